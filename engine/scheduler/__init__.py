"""What each step does: integers and queues. Knows no tensors and no threads."""
