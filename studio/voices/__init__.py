"""Finding voices by name, and rules for them."""
