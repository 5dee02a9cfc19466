"""Measures speech quality: intelligibility, voice similarity, acoustic features."""
