"""More than a server can bear, and attacks on it, while somebody listens."""
