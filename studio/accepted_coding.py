"""Whether a client takes a compressed answer. Knows no routes."""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import Headers

_GZIP: Final = re.compile(r"gzip(\s*;\s*q=(?!0(\.0*)?$).*)?")  # q=0 refuses it


def takes_gzip(headers: Headers) -> bool:
    codings = headers.get("accept-encoding", "").lower().split(",")
    return any(_GZIP.fullmatch(coding.strip()) for coding in codings)
