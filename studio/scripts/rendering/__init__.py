"""Rendering a script: its lines as one batch, how far it is, and who hears it."""
