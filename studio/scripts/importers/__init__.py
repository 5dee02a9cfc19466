"""Scripts from typed text and files."""
