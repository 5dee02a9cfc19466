"""Defaults for Hugging Face Spaces (docs/spaces.md). `app.py` passes the environment in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

BUCKET: Final = Path("/data")  # where a Space's persistent storage is mounted
# A Space is reached through its platform's proxy alone, whose address was 10.16.3.80 where others
# looked (embeddings-benchmark/mteb, pull request 4754). Hugging Face documents no network.
PROXIES: Final = ("10.0.0.0/8",)
YES: Final = ("1", "t", "true")


def defaults(environment: Mapping[str, str]) -> dict[str, Any]:
    """Defaults on a Space for settings that are not set; empty elsewhere."""
    if not environment.get("SPACE_ID"):
        return {}
    from studio.server.middleware.headers import SPACES

    defaults: dict[str, Any] = {
        "host": "0.0.0.0",
        "guests": True,
        "frame_ancestors": SPACES,
        "proxies": PROXIES,
    }
    if name := environment.get("SPACE_HOST"):
        defaults["hosts"] = (name,)
    if os.access(BUCKET, os.W_OK):
        defaults["data"] = BUCKET / "timbre"
    return defaults


def is_zero(environment: Mapping[str, str]) -> bool:
    """Whether this is a ZeroGPU Space."""
    return environment.get("SPACES_ZERO_GPU", "").lower() in YES
