"""What is told of a recording: checks, and a picture for each."""
