"""One engine that is elsewhere: in a process of its own, or in one that borrows a device."""
