"""Training losses, besides the cross entropy of codes."""
