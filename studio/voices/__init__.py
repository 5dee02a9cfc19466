"""Voices as a person picks them."""
