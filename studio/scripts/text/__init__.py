"""Text as it is spoken: sentences, numbers, pronunciation, tags."""
