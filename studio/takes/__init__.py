"""Takes: everything that was spoken, live and kept."""
