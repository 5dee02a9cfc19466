"""An engine in a process of its own, so that nothing else here can hold up its steps."""
