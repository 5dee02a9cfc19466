"""Networks of a checkpoint folder, built to its config and filled from its weights."""
