"""What the device holds for each slot between steps, and how much memory that takes."""
