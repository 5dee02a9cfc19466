"""Overload, attacks and soak tests of a server, while somebody listens."""
