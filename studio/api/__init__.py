"""The HTTP and WebSocket API, compatible with OpenAI's.

`create_api(engine, library, settings)` returns the ASGI application. It reads no environment and
knows no page.
"""

from studio.api.application import create_api
from studio.settings import ApiSettings

__all__ = ["ApiSettings", "create_api"]
