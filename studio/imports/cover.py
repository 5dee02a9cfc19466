"""A picture that a stranger has made as a JPEG of ours: decoded within bounds, drawn anew."""

from __future__ import annotations

import io
import warnings

SIDE = 1_200  # pixels of the longer side
MOST_PIXELS = 40_000_000
MOST_BYTES = 2 << 20
QUALITY = 85
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
_BEGINS, _ENDS = b"\xff\xd8\xff", b"\xff\xd9"


def as_jpeg(data: bytes) -> bytes:
    """Empty where it is no picture, or there is no Pillow."""
    try:
        from PIL import Image

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    return b""
                picture.draft("RGB", (2 * SIDE, 2 * SIDE))  # a JPEG is decoded at a smaller size
                picture.thumbnail((SIDE, SIDE))
                drawn = io.BytesIO()
                picture.convert("RGB").save(drawn, "JPEG", quality=QUALITY)
    except Exception:  # whatever a library does with bytes that are no picture
        return b""
    made = drawn.getvalue()
    return made if is_jpeg(made) else b""


def is_jpeg(data: bytes) -> bool:
    """Whether it may be what `as_jpeg` has made."""
    return len(data) <= MOST_BYTES and data.startswith(_BEGINS) and data.endswith(_ENDS)
