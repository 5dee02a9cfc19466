"""Reference audio into speaker embeddings and codes."""
