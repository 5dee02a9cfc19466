"""The commands serve, say, voices and info, on a local engine or on a server.

`app.py` reads arguments and environment and passes them in.
"""

from studio.cli.app_context import AppContext
from studio.cli.connection import Connection, ServerError
from studio.cli.console import Console, Reporter, read_words
from studio.cli.listing import list_abilities, list_voices
from studio.cli.local_speech import LocalSynthesis, check, record
from studio.cli.remote import Server
from studio.cli.say_options import SayOptions, check_options
from studio.cli.serve import serve_lent, serve_studio
from studio.cli.speech_output import Take, speak

__all__ = [
    "AppContext",
    "Connection",
    "Console",
    "LocalSynthesis",
    "Reporter",
    "SayOptions",
    "Server",
    "ServerError",
    "Take",
    "check",
    "check_options",
    "list_abilities",
    "list_voices",
    "read_words",
    "record",
    "serve_lent",
    "serve_studio",
    "speak",
]
