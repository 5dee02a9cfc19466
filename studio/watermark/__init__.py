"""An inaudible mark in everything that is spoken, and the search for it in a sound.

The mark is Perth's, which Resemble AI publishes with weights (`resemble-perth`, an extra). Only
the weights are read: the library's code wants torchaudio and pkg_resources, which not every
machine has, so its two networks are written again here, in NumPy. The mark says "a program spoke
this"; it does not say which program, which server or which person.

    weights    the numbers, out of the installed package and without unpickling
    network    seven convolutions over time
    spectra    sound into short spectra and back
    marking    sound with the mark, and how surely a sound has it
    verdict    a stranger's file checked and judged in words
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
