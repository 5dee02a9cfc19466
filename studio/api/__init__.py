"""The wire: an HTTP and WebSocket API in the shape the field expects.

`create_api(engine, library, settings)` gives the ASGI application. Reads no environment and
knows nothing of the page beside it.
"""

from studio.api.application import create_api
from studio.settings import ApiSettings

__all__ = ["ApiSettings", "create_api"]
