"""What the commands do: serve, say, voices, info, here or on a server.

Reads no arguments and no environment: `app.py` hands in what was asked and where to tell news.
"""

from studio.commands.connection import Connection, ServerError
from studio.commands.console import Console, Teller, read_words
from studio.commands.listing import list_abilities, list_voices
from studio.commands.local import Here, check, record
from studio.commands.order import Order, check_order
from studio.commands.place import Place
from studio.commands.serve import serve_lent, serve_studio
from studio.commands.server import Server
from studio.commands.speaking import Take, speak

__all__ = [
    "Connection",
    "Console",
    "Here",
    "Order",
    "Place",
    "Server",
    "ServerError",
    "Take",
    "Teller",
    "check",
    "check_order",
    "list_abilities",
    "list_voices",
    "read_words",
    "record",
    "serve_lent",
    "serve_studio",
    "speak",
]
