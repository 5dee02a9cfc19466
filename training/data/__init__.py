"""Text, voices and synthetic speech to train on."""
