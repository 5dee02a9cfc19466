"""Plans each step with integers and queues; no tensors, no threads."""
