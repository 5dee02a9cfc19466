"""Voices as data: saved, blended, and routed to a checkpoint."""
