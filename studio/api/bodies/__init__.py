"""Bodies of requests: JSON within limits, multipart forms, recordings in data: URLs."""
