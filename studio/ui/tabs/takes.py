"""The list of saved takes: search, play, compare, star, regenerate, delete, restore.

With guests each browser sees only its own takes; otherwise everyone sees all. Files are the store's
business (`Takes`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

import gradio as gr

from engine import RequestError
from studio.context import Studio
from studio.takes.downloads import MOST
from studio.takes.take_store import Take, Takes
from studio.ui import take_card
from studio.ui.drafts import browser_id, on_back
from studio.ui.i18n import both, tell, word
from studio.ui.player.event_transport import Payload
from studio.ui.player.player import PLAYING, live_player
from studio.ui.speech_form import named_now, voice_names
from studio.ui.tabs.take_compare import (
    Shown,
    TakeCompare,
    act,
    again,
    newest,
    pair,
    shown,
    with_waves,
)
from studio.ui.tabs.voice_form import QUIET, on_show

Update: TypeAlias = Any  # what Gradio takes for a component

PAGE: Final = 20  # takes in the list at first, and more with each press
SHOW: Final = (("All", "all"), ("Starred", "starred"), ("Deleted", "deleted"))
NONE: Final = {
    "all": "What is spoken under Speak is kept here.",
    "starred": "No take is starred. Star those that you want to keep.",
    "deleted": "Nothing is deleted. What you delete lies here for a while.",
}


class TakesTab:
    """Event handlers."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def find(self, words: str, which: str, owner: str) -> list[Take]:
        """The takes a visitor may see, newest first."""
        if self._studio.guests and not owner:
            return []
        choices = self._studio.choices()
        found = self._studio.takes.search(
            words,
            called=voice_names(choices),
            owner=owner if self._studio.guests else None,
            starred=which == "starred",
            deleted=which == "deleted",
        )
        return named_now(found, choices)

    def listed(self, words: str, which: str, most: int, owner: str) -> tuple[str, Update]:
        """The list, and the button that shows more."""
        found = self.find(words, which, owner)
        if not found:
            return _empty(words, which), gr.update(visible=False)
        shown = with_waves(self._studio.takes, found[:most])
        listed = take_card.chooser(shown, deleted=which == "deleted")
        return listed, gr.update(visible=len(found) > most)

    def anew(self, words: str, which: str, owner: str) -> tuple[int, str, Update]:
        """A new search starts at the first page."""
        return PAGE, *self.listed(words, which, PAGE, owner)

    def more(self, words: str, which: str, most: int, owner: str) -> tuple[int, str, Update]:
        return most + PAGE, *self.listed(words, which, most + PAGE, owner)

    def act(
        self, ids: Shown, words: str, which: str, most: int, owner: str, event: gr.EventData
    ) -> tuple[Update, ...]:
        """Handle a button of a row or a card."""
        takes, told = self._studio.takes, event._data
        try:
            ids = act(takes, ids, str(told.get("do")), str(told.get("take")))
        except RequestError as error:
            raise gr.Error(tell(error.message), print_exception=False) from error
        return *shown(self._studio, ids), *self.listed(words, which, most, owner)

    def act_on_all(
        self, ids: Shown, words: str, which: str, most: int, owner: str, event: gr.EventData
    ) -> tuple[Update, ...]:
        """Apply one action to all selected rows; missing takes are skipped."""
        takes, what = self._studio.takes, str(event._data.get("do"))
        chosen = [str(each) for each in event._data.get("takes", [])[:MOST]]
        stars = what == "star" and all(map(_starred(takes), chosen))
        for number in chosen:
            with suppress(RequestError):
                if what == "star":
                    takes.star(number, not stars)
                else:
                    act(takes, ids, what, number)
        return *shown(self._studio, ids), *self.listed(words, which, most, owner)

    def keep(
        self, words: str, which: str, most: int, owner: str, event: gr.EventData
    ) -> tuple[Update, ...]:
        """Show a regenerated take beside its origin."""
        number = event._data.get("take")
        if not number:
            return (gr.skip(),) * 7
        listed = self.listed(words, which, most, owner)
        return *shown(self._studio, newest(self._studio.takes, number)), *listed


def _starred(takes: Takes) -> Callable[[str], bool]:
    def starred(number: str) -> bool:
        try:
            return takes.get(number).starred
        except RequestError:
            return True

    return starred


def _empty(words: str, which: str) -> str:
    said = "No results" if words.strip() else NONE[which]
    return f'<div class="timbre-empty"><p>{both(said)}</p></div>'


class Found(NamedTuple):
    """Search fields and the list."""

    words: gr.Textbox
    which: gr.Radio
    most: gr.State
    owner: gr.Textbox
    rows: gr.HTML
    more: gr.Button

    @property
    def wanted(self) -> list[Any]:
        return [self.words, self.which, self.most, self.owner]

    @property
    def listing(self) -> list[Any]:
        return [self.rows, self.more]


def build(studio: Studio, owner: gr.Textbox | None = None) -> None:
    """Build the page in the current Blocks context."""
    with gr.Row(equal_height=True):
        words = gr.Textbox("", label=word("Search"), max_lines=1, min_width=200)
        which = gr.Radio(
            [(word(label), name) for label, name in SHOW], value="all", label=word("Show")
        )
    player = live_player(studio.live, elem_id="takes-player")
    sides = pair()
    rows = gr.HTML(js_on_load=take_card.PRESSES, elem_classes="timbre-plain", padding=False)
    more = gr.Button(word("Show more"), visible=False)
    found = Found(words, which, gr.State(PAGE), owner or browser_id(), rows, more)
    _wire(studio, found, sides, player)


def _wire(studio: Studio, found: Found, sides: TakeCompare, player: gr.HTML) -> None:
    tab = TakesTab(studio)

    async def anew(owner: str, event: gr.EventData) -> AsyncIterator[Payload]:
        async for payload in again(studio, event, owner):
            yield payload

    on_show(tab.listed, found.listing, found.wanted)
    on_back(tab.listed, found.wanted, found.listing)
    found.owner.change(tab.listed, found.wanted, found.listing, **QUIET)
    asked = [found.words, found.which, found.owner]
    gr.on(  # change: Gradio's `input` is a key pressed, so a pasted word would find nothing
        [found.words.change, found.which.input],
        tab.anew,
        asked,
        [found.most, *found.listing],
        trigger_mode="always_last",
        **QUIET,
    )
    found.more.click(tab.more, found.wanted, [found.most, *found.listing], **QUIET)
    cards = [sides.left.card, sides.right.card]
    for own in (*cards, found.rows):
        own.act(tab.act, [sides.ids, *found.wanted], [*sides.outputs, *found.listing], **QUIET)
    rows = [*sides.outputs, *found.listing]
    found.rows.all(tab.act_on_all, [sides.ids, *found.wanted], rows, **QUIET)
    for own in cards:
        own.again(anew, found.owner, player, **PLAYING)
    player.take(tab.keep, found.wanted, [*sides.outputs, *found.listing], **QUIET)
