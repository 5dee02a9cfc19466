"""The engine's public face. The studio imports only the names in `__all__`.

Importing this package leaves torch out: the device side is loaded by `open_engine` alone.
"""
