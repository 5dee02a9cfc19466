"""Builds a checkpoint's networks and loads their weights."""
