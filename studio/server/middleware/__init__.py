"""ASGI middleware of a server with a page: who may send what, headers, compression."""
