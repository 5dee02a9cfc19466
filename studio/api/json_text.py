"""JSON output of the API: compact and ASCII, so that any text is quoted safely."""

from __future__ import annotations

import json
from typing import Any


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
