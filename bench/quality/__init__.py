"""Measures speech quality: intelligibility, voice similarity, spectra."""
