"""A request in flight: from what was asked to the queue its chunks wait in."""
