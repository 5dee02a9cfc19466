"""Natural teachers: other people's networks, whose speech Timbre Mini may learn from."""
