"""What makes clients of other services work as they are: their names, paths and habits."""
