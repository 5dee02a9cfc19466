"""An inaudible watermark in all generated audio, and its detection.

The watermark is Perth's, which Resemble AI publishes with weights (`resemble-perth`, an extra).
Only the weights are used: the library's code needs torchaudio and pkg_resources, so its networks
are reimplemented here in NumPy. The watermark says that a program spoke; it does not identify the
program, the server or the user.

    perth_weights   weights from the installed package, without unpickling
    perth_network   seven convolutions over time
    stft            short-time spectra and their inverse
    embed           adds the watermark, and scores audio
    detect          checks an untrusted file and explains the result
"""

from studio.watermark.detect import CLEAR, MARKED, UNSURE, Verdict, judge
from studio.watermark.embed import Watermark, open_watermark
from studio.watermark.perth_weights import MISSING, is_installed

__all__ = [
    "CLEAR",
    "MARKED",
    "MISSING",
    "UNSURE",
    "Verdict",
    "Watermark",
    "is_installed",
    "judge",
    "open_watermark",
]
