"""What a browser keeps of its own: the fields that somebody was filling in, and who it is.

Each tab has its own fields; a new one begins with those that were filled in last. Runs in the
browser alone, so that a cut connection loses nothing. Knows no tab of the studio.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import gradio as gr
from gradio.context import Context
from gradio.events import Dependency

Trigger: TypeAlias = Any  # an event of a component, as `gr.on` takes it

# A recording is a file of the server's, which forgets it after a while.
FILL: Final = """
async (...now) => {
  const name = NAME;
  const there = (value) => fetch(value.url, { method: 'HEAD' }).then(({ ok }) => ok, () => false);
  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(name) ?? localStorage.getItem(name));
  } catch {}
  (window.timbreDrafts ??= new Set()).add(name);
  if (kept?.length !== now.length) return []; // nothing is set: somebody may be typing by now
  const fill = async (value) => (value?.url && !(await there(value)) ? null : value);
  return Promise.all(kept.map(fill));
}
"""
KEEP: Final = """
(...now) => {
  const name = NAME;
  try {
    if (!window.timbreDrafts?.has(name)) return [];
    for (const store of [sessionStorage, localStorage]) store.setItem(name, JSON.stringify(now));
  } catch {}
  return [];
}
"""


# Who knows it sees the takes of this browser, so it is drawn like a key.
OWNER: Final = """
() => {
  const drawn = [...crypto.getRandomValues(new Uint8Array(16))];
  const fresh = drawn.map((each) => each.toString(16).padStart(2, '0')).join('');
  try {
    const kept = localStorage.getItem('timbre-browser') ?? fresh;
    localStorage.setItem('timbre-browser', kept);
    return kept;
  } catch {
    return fresh;
  }
}
"""
QUIET: Final[dict[str, Any]] = {
    "queue": False,
    "show_progress": "hidden",
    "api_visibility": "private",
}


def browser_id() -> gr.Textbox:
    """Filled when the page opens with an id that this browser keeps; empty until then."""
    own = gr.Textbox("", elem_classes="timbre-unseen", max_length=64)
    if Context.root_block is not None:
        gr.on([Context.root_block.load], None, None, own, js=OWNER, **QUIET)
    return own


def back() -> Trigger:
    """The event that a lost connection is there again."""
    press = gr.Button(elem_classes=["timbre-unseen", "timbre-back"])
    return press.click


def keep_draft(name: str, fields: Sequence[Any]) -> Dependency | None:
    """Keep these fields in the browser; the event that fills them when the page opens."""
    page = Context.root_block
    if page is None:
        return None
    quoted = json.dumps(f"timbre-draft-{name}")
    changes = [field.change for field in fields]
    gr.on(changes, None, list(fields), None, js=KEEP.replace("NAME", quoted), **QUIET)
    load = page.load
    filled: Dependency = load(
        None, list(fields), list(fields), js=FILL.replace("NAME", quoted), **QUIET
    )
    return filled
