"""A voice of one's own: learned from a person's recordings, as data beside an untouched model."""
