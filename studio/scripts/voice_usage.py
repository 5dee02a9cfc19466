"""Where a saved voice is used: the scripts that cast it, the takes that it spoke."""

from __future__ import annotations

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

    def told(self, guests: bool) -> Message:
        """The usage as text; guests do not see titles of each other's scripts."""
        count = len(self.scripts)
        titles = ", ".join(f"“{title}”" for title in self.scripts[:TITLES])
        more = ", …" if count > TITLES else ""
        scripts = Message("1 script") if count == 1 else Message("{count} scripts", count=count)
        if not guests:
            scripts = Message("{scripts} ({titles})", scripts=scripts, titles=titles + more)
        takes = Message("1 take") if self.takes == 1 else Message("{count} takes", count=self.takes)
        parts = [scripts] * bool(count) + [takes] * bool(self.takes)
        return Message.listed(parts)

    def __bool__(self) -> bool:
        return bool(self.scripts or self.takes)


def usage_of(voice: SavedVoice, scripts: ScriptStore, takes: Takes) -> Usage:
    """Takes and scripts that are not deleted and hold this voice, alone or in a blend."""
    key = scripts.choices().key
    titles = [
        each.title
        for each in scripts.summaries()
        if any(_holds(key(v), voice) for v in each.voices)
    ]
    return Usage(tuple(titles), sum(_holds(take.voice_key, voice) for take in takes.search()))


def _holds(key: str, voice: SavedVoice) -> bool:
    """`#ada`, or `#ada(2)+ryan(1)`."""
    return f"#{voice.id}" in {part.partition("(")[0] for part in key.split("+")}
