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
from studio.takes.event_transport import Payload
from studio.takes.take_store import Take, Takes
from studio.ui import take_card
from studio.ui.drafts import back, browser_id
from studio.ui.gradio_compat.events import detail
from studio.ui.i18n import both, errors_shown, warn, word
from studio.ui.live_player import live_player, plays
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


class Page(NamedTuple):
    """How many takes a search shows."""

    searched: tuple[str, str] = ("", "all")  # words, and which takes
    most: int = PAGE


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

    def listed(
        self, words: str, which: str, page: Page, owner: str
    ) -> tuple[Update, Update, Update]:
        """The page, the list, and the button that shows more. A new search shows the first page."""
        searched, most = (words, which), page.most
        turned = gr.skip()
        if page.searched != searched:
            turned, most = Page(searched), PAGE
        found = self.find(words, which, owner)
        if not found:
            return turned, _empty(words, which), gr.update(visible=False)
        shown = with_waves(self._studio.takes, found[:most])
        listed = take_card.chooser(shown, deleted=which == "deleted")
        return turned, listed, gr.update(visible=len(found) > most)

    def more(self, page: Page, changes: int) -> tuple[Page, int]:
        return page._replace(most=page.most + PAGE), changes + 1

    def act(self, ids: Shown, changes: int, event: gr.EventData) -> tuple[Update, ...]:
        """Handle a button of a row or a card."""
        takes, sent = self._studio.takes, detail(event)
        with errors_shown():
            ids = act(takes, ids, str(sent.get("do")), str(sent.get("take")))
        return *shown(self._studio, ids), changes + 1

    def arrive(self, wanted: str, owner: str, changes: int) -> tuple[Update, ...]:
        """Show the take that an address names; the request is cleared so that it can repeat."""
        if not wanted:
            return (gr.skip(),) * 7
        takes = self._studio.takes
        try:
            take = takes.find(wanted)
            if self._studio.guests and take.owner != owner:
                raise RequestError("This take is not here.")
        except RequestError as error:
            warn(error.message)
            return *(gr.skip(),) * 6, ""
        return *shown(self._studio, (take.id, "")), changes, ""

    def act_on_all(self, ids: Shown, changes: int, event: gr.EventData) -> tuple[Update, ...]:
        """Apply one action to all selected rows; missing takes are skipped."""
        takes, what = self._studio.takes, str(detail(event).get("do"))
        chosen = [str(each) for each in detail(event).get("takes", [])]
        stars = what == "star" and all(map(_starred(takes), chosen))
        for number in chosen:
            with suppress(RequestError):
                if what == "star":
                    takes.star(number, not stars)
                else:
                    act(takes, ids, what, number)
        return *shown(self._studio, ids), changes + 1

    def keep(self, changes: int, event: gr.EventData) -> tuple[Update, ...]:
        """Show a regenerated take beside its origin."""
        number = detail(event).get("take")
        if not number:
            return (gr.skip(),) * 6
        return *shown(self._studio, newest(self._studio.takes, number)), changes + 1


def _starred(takes: Takes) -> Callable[[str], bool]:
    def starred(number: str) -> bool:
        try:
            return takes.get(number).starred
        except RequestError:
            return True

    return starred


def _empty(words: str, which: str) -> str:
    text = "No results" if words.strip() else NONE[which]
    return f'<div class="timbre-empty"><p>{both(text)}</p></div>'


class Found(NamedTuple):
    """Search fields and the list."""

    words: gr.Textbox
    which: gr.Radio
    page: gr.State
    owner: gr.Textbox
    rows: gr.HTML
    more: gr.Button
    wanted: gr.Textbox  # the take that an address names
    changes: gr.State  # every change of a take increments it, and the list follows


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
    owner = owner or browser_id()
    wanted = gr.Textbox("", elem_id="takes-wanted", elem_classes="timbre-unseen")
    found = Found(words, which, gr.State(Page()), owner, rows, more, wanted, gr.State(0))
    _wire(studio, found, sides, player)


def _wire(studio: Studio, found: Found, sides: TakeCompare, player: gr.HTML) -> None:
    tab, changes = TakesTab(studio), found.changes

    async def anew(owner: str, event: gr.EventData) -> AsyncIterator[Payload]:
        async for payload in again(studio, event, owner):
            yield payload

    # change: Gradio's `input` is a key pressed, so a pasted word would find nothing
    triggers = [found.words.change, found.which.input]
    if studio.guests:  # of whom each has a list of their own
        triggers.append(found.owner.change)
    listed = [found.page, found.rows, found.more]
    wanted = [found.words, found.which, found.page, found.owner]
    on_show(tab.listed, listed, wanted, [*triggers, changes.change, back()])
    found.more.click(tab.more, [found.page, changes], [found.page, changes], **QUIET)
    acted = [*sides.outputs, changes]
    found.wanted.change(
        tab.arrive, [found.wanted, found.owner, changes], [*acted, found.wanted], **QUIET
    )
    cards = [sides.left.card, sides.right.card]
    for card in (*cards, found.rows):
        card.act(tab.act, [sides.ids, changes], acted, **QUIET)
    found.rows.all(tab.act_on_all, [sides.ids, changes], acted, **QUIET)
    for card in cards:
        plays(player, [card.again], anew, [found.owner])
    player.take(tab.keep, changes, acted, **QUIET)
