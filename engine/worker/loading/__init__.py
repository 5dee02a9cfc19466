"""Build the networks of a checkpoint folder and fill them from its weights."""
