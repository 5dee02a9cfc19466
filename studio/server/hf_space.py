"""What a Hugging Face Space needs other than a machine of one's own (docs/spaces.md).

Reads no environment: `app.py` hands it in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from studio.server.headers import SPACES

BUCKET: Final = Path("/data")  # where a Space's storage is mounted, if it has any
PROXIES: Final = ("10.0.0.0/8",)  # a Space is reached through its platform's alone
YES: Final = ("1", "t", "true")


def defaults(environment: Mapping[str, str]) -> dict[str, Any]:
    """Settings that nobody has set; none anywhere else."""
    if not environment.get("SPACE_ID"):
        return {}
    own: dict[str, Any] = {
        "host": "0.0.0.0",
        "guests": True,
        "frame_ancestors": SPACES,
        "proxies": PROXIES,
    }
    if name := environment.get("SPACE_HOST"):
        own["hosts"] = (name,)
    if os.access(BUCKET, os.W_OK):
        own["data"] = BUCKET / "timbre"
    return own


def is_zero(environment: Mapping[str, str]) -> bool:
    """Is the GPU lent to one request at a time?"""
    return environment.get("SPACES_ZERO_GPU", "").lower() in YES
