"""What is heard: words understood, voices told apart, spectra."""
