"""Some words of a line spoken anew: the line is made again with another seed, and those words of it
take the place of what was there. Knows no listener.
"""

from __future__ import annotations

import asyncio
import hashlib

from engine import InvalidText, Message, RequestError
from studio.scripts import Project
from studio.scripts.edits import lock
from studio.scripts.rendering.batch_synthesis import BatchSynthesis, Speaker
from studio.scripts.store import ScriptStore
from studio.scripts.words.word_splice import Spliced, splice
from studio.takes.take_store import random_seed


async def redo_words(
    store: ScriptStore, speaker: Speaker, number: str, line: int, words: range
) -> Spliced:
    """Lock the line to its sound with the words at these characters of its text made anew; what
    it had before stays as a take. Raises TimbreError."""
    opened = await asyncio.to_thread(store.look, number)
    before, sounds = opened.take(line), opened.sounds
    if not before or sounds is None:
        raise InvalidText("Speak this line first, then regenerate some of its words.")
    spoken = opened.script.line(line)
    voice = opened.project.casting.heard_in(spoken)
    job = await asyncio.to_thread(store.job_with, number, line, random_seed())
    async with BatchSynthesis(speaker, [job], sounds, listening=False) as batch:
        await batch.wait()
    if batch.first_error:
        raise RequestError(batch.first_error)

    def exchanged() -> Spliced:
        old, new = sounds.read(before), sounds.read(job.key)
        spliced = splice(spoken.text, old, new, words.start, words.stop)
        key = hashlib.sha256(spliced.pcm.tobytes()).hexdigest()[:32]
        sounds.keep(key, spliced.pcm)
        place = store.look(number).script.place(line) + 1
        name = Message("the words of line {place}", place=place)

        def check(now: Project) -> None:
            same = now.script.line(line) == spoken and now.casting.heard_in(spoken) == voice
            if not same:
                raise InvalidText("This line was changed meanwhile. Regenerate its words again.")

        store.edit(number, lambda script: lock(script, line, key, voice), name, check)
        return spliced

    return await asyncio.to_thread(exchanged)
