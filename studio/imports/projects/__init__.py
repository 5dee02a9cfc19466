"""Project files on their way in: uploaded, bounded, checked, and sent between processes."""
