"""Compatibility with clients of other services: names, paths and conventions."""
