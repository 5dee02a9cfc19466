"""Gradio works without what its import does for others: stub files, and pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OWN = """
import gradio as gr

class Own(gr.HTML):
    EVENTS = [gr.events.Events.click]

with gr.Blocks() as page:
    own = Own("<b>here</b>")
    own.click(lambda: None)
assert [each.targets[0][1] for each in page.fns.values()] == ["click"]
"""


def test_components_are_made_and_no_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    path = [str(tmp_path), *sys.path]
    code = f"import sys; sys.path[:] = {path!r}; import studio.ui, own; print(own.Own.EVENTS)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert "click" in ran.stdout
    assert not list(tmp_path.rglob("*.pyi"))


def test_pandas_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    code = (
        "import sys, studio.ui, gradio\n"
        "assert 'pandas.core' not in sys.modules\n"
        "assert gradio.Dataframe().postprocess([[1, 2]]).data == [[1, 2]]\n"
        "import pandas\n"
        "print(pandas.DataFrame([[1, 2]]).sum(axis=1)[0])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "3"), ran.stderr
