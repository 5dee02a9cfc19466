"""A recording for the scripts, of the standard library alone: tones with silence between them."""

import io
import math
import struct
import wave


def recording(seconds: float = 3.0, hertz: float = 200.0, rate: int = 24_000) -> bytes:
    samples = bytearray()
    for i in range(round(seconds * rate)):
        t = i / rate
        loud = 0.3 if math.sin(4 * math.pi * t) > -0.5 else 0.0
        samples += struct.pack("<h", round(32767 * loud * math.sin(2 * math.pi * hertz * t)))
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples)
    return buffer.getvalue()
