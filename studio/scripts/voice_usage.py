"""Where a saved voice is used: the scripts that cast it, the takes that it spoke."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from engine import Message, SavedVoice
from studio.scripts.store import ScriptStore
from studio.takes.take_store import Takes

TITLES = 3  # scripts that are named


@dataclass(frozen=True)
class Usage:
    """Scripts by their titles, and how many takes."""

    scripts: tuple[str, ...]
    takes: int

    def told(self) -> Message:
        count = len(self.scripts)
        titles = ", ".join(f"“{title}”" for title in self.scripts[:TITLES])
        more = ", …" if count > TITLES else ""
        scripts = Message("1 script") if count == 1 else Message("{count} scripts", count=count)
        scripts = Message("{scripts} ({titles})", scripts=scripts, titles=titles + more)
        takes = Message("1 take") if self.takes == 1 else Message("{count} takes", count=self.takes)
        parts = [scripts] * bool(count) + [takes] * bool(self.takes)
        return Message.listed(parts)

    def __bool__(self) -> bool:
        return bool(self.scripts or self.takes)


def usage_of(
    voice: SavedVoice,
    scripts: ScriptStore,
    takes: Takes,
    owner: str | None = None,
    numbers: Collection[str] | None = None,
) -> Usage:
    """Takes and scripts that are not deleted and hold this voice, alone or in a blend.

    Restricted to one visitor, since others' voices may have the same id: takes of `owner`, scripts
    of these `numbers`. None: all.
    """
    key = scripts.choices().key
    titles = [
        each.title
        for each in scripts.summaries()
        if (numbers is None or each.id in numbers)
        and any(_holds(key(v), voice) for v in each.voices)
    ]
    count = sum(_holds(take.voice_key, voice) for take in takes.search(owner=owner))
    return Usage(tuple(titles), count)


def _holds(key: str, voice: SavedVoice) -> bool:
    """`#ada`, or `#ada(2)+ryan(1)`."""
    return f"#{voice.id}" in {part.partition("(")[0] for part in key.split("+")}
