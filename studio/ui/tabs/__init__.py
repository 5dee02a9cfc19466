"""The tabs: each module builds one from a `Studio`, and knows nothing of the others."""
