"""Voices as data: saved, blended, and routed to the checkpoint that speaks them."""
