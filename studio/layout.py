"""Where Timbre's files and a person's data lie, in a checkout and where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
INSTALLED: Final = __package__ != "studio"  # as timbre.studio; else this is a checkout
COMMAND: Final = "timbre" if INSTALLED else "python app.py"
SEARCHED: Final = ROOT.parent if INSTALLED else ROOT  # the folder that Python finds us in
PREFIX: Final = "TIMBRE_"  # of environment variables


def data_folder() -> Path:
    """The folder of voices, takes and scripts: `data` in a checkout that has one already, else the
    system's folder for a user's data, which outlives the program."""
    folder = ROOT / "data"
    if not INSTALLED and folder.is_dir():
        return folder
    from platformdirs import user_data_path

    return user_data_path("timbre", appauthor=False)
