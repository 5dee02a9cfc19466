"""A request in flight: input processing, sequence state, output queue."""
