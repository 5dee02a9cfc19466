"""The request of the page's event that runs, if one does. Does not import Gradio."""

from __future__ import annotations

import sys
from typing import Any

from studio.api.rates import address_of


def page_request() -> Any:
    """Gradio's request."""
    gradio = sys.modules.get("gradio.context")  # not loaded if only the API is served
    return gradio.LocalContext.request.get(None) if gradio else None


def page_address() -> str:
    """The address of the visitor whose event runs; empty where none does."""
    request = page_request()
    return address_of(request.request.scope) if request and request.request else ""
