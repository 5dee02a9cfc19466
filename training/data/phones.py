"""The phones that codec and talker are taught by: those of English."""

from __future__ import annotations

_NAMES = (
    "pau aa ae ah ao aw ax ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th"
    " uh uw v w y z zh"
)
PHONES = tuple(_NAMES.split())
