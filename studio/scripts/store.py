"""All scripts of a data folder: every change is saved before it returns, and can be undone.

A script has a number once it has lines; a blank one is not stored. The last states of each script
are kept in memory. Files and typed text are parsed by a `Reader`. Knows no page.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple, Protocol

from engine import InvalidText, Message, Preset, RequestError, Voice
from studio.scripts import (
    Casting,
    Delivery,
    Job,
    LineAudio,
    Project,
    Projects,
    ProjectSummary,
    Script,
    plan,
    resolve_cast,
    suggest,
)
from studio.scripts.books import Imported, language_named, take_in
from studio.scripts.casting import MISSING, found_cast, found_voice
from studio.scripts.edits import lock, redo, revise, unlock
from studio.scripts.history import History
from studio.scripts.line_takes import changed_lines, take_of, with_takes
from studio.scripts.music.cue import followed
from studio.scripts.open_script import OpenScript
from studio.scripts.project_files import export_project
from studio.scripts.text.passages import PLAIN, SpeechOptions
from studio.scripts.titles import free_title, listed_title, plain, title_of
from studio.scripts.tracks import spoken_key
from studio.takes.take_store import DAY
from studio.voices.voice_catalog import Choice, Choices
from studio.voices.voice_digest import voice_digest

TRASH = 30 * DAY  # seconds that a deleted script can be brought back, at least
PROJECT_SUFFIX = ".zip"
PLAINLY = Delivery()
REMEMBERED = 200  # scripts whose plans are in memory


class Reader(Protocol):
    """Parses what a user typed or uploaded (studio/imports). Raises InvalidText."""

    def typed(
        self,
        text: str,
        options: SpeechOptions = PLAIN,
        speakers: Collection[str] = (),
        moods: Collection[str] = (),
    ) -> Script: ...

    def script(self, path: Path) -> Imported: ...

    def project(self, path: Path, folder: Path) -> Project: ...


class _Plan(NamedTuple):
    """What an open script has besides its project."""

    changed: float
    jobs: tuple[Job, ...]
    able: frozenset[str]
    moods: Mapping[str, str]


class ScriptStore:
    """Thread-safe. `choices` returns the voices that are available now."""

    def __init__(self, folder: Path, reader: Reader, choices: Callable[[], Choices]) -> None:
        self.choices = choices
        self.on_change: Callable[[str], object] = lambda number: None  # after it was saved
        self._reader = reader
        self._projects = Projects(folder)
        self._past = History()
        self._planned: dict[str, _Plan] = {}
        self._lock = threading.RLock()

    # Reading.

    def listed(self) -> list[tuple[Message, str]]:
        """Labels and numbers, the latest change first."""
        return [
            (listed_title(project.title, project.lines), project.id)
            for project in self._projects.listed()
        ]

    def summaries(self) -> list[ProjectSummary]:
        return self._projects.listed()

    def titles(self) -> dict[str, str]:
        """Titles by number."""
        return {project.id: project.title for project in self._projects.listed()}

    def voices(self) -> list[tuple[str, str]]:
        """Labels and keys of all."""
        return _labelled(self.choices().list())

    def menu(self, words: str, also: Iterable[str]) -> tuple[list[tuple[str, str]], bool]:
        """Labels and keys in the cast's menus (`Choices.menu`), and whether those are all."""
        menu = self.choices().menu(words, also)
        return _labelled(menu.voices), menu.complete

    def languages(self) -> list[tuple[str, str]]:
        return [(name.capitalize(), name) for name in self.choices().languages()]

    def blank(self) -> OpenScript:
        return OpenScript("", Project(casting=Casting(default=self.voices()[0][1])), (), None)

    def open(self, number: str) -> OpenScript:
        """Load a script and plan its jobs. Raises RequestError."""
        return self._opened(number, self._load(number)) if number else self.blank()

    def look(self, number: str) -> OpenScript:
        """Like `open`, but plans only after a change: for polling."""
        project = self._load(number) if number else None
        planned = self._planned.get(number)
        if project is None or planned is None or project.changed != planned.changed:
            return self.open(number)
        return self._of(number, project, planned)

    def undone_next(self, number: str) -> Message | None:
        """The change that `undo` takes back; None if there is none."""
        return self._past.last(number)

    def begin_rendering(self, number: str) -> None:
        self._projects.begin_rendering(number)

    def end_rendering(self, number: str) -> None:
        self._projects.end_rendering(number)

    def is_rendering(self, number: str) -> bool:
        return self._projects.is_rendering(number)

    def resume_rendering(self, number: str, done: int) -> bool:
        return self._projects.resume_rendering(number, done)

    # Changes.

    def change(self, number: str, work: Callable[[Project], Project], name: Message) -> OpenScript:
        """Save a change that can be undone, under its name."""
        with self._lock:
            before = self._load(number)
            after = work(before)
            if after == before:
                return self._opened(number, before)
            saved = self._projects.save(number, after)
            self._past.push(number, before, name)
        return self._opened(number, saved, changed=True)

    def recast(self, number: str, who: str, voice: str) -> OpenScript:
        """Give a speaker, or with an empty name whoever has none, another voice.

        What was spoken with the voice before stays as takes of its lines. Raises UnknownVoice.
        """
        self.resolve(voice)

        def recast(project: Project) -> Project:
            cast = project.casting
            cast = cast.with_voice(who, voice) if who else cast.having(default=voice)
            after = project.having(casting=cast)
            speakers = project.script.speakers
            before, now = project.casting.voices_of(speakers), cast.voices_of(speakers)
            places = [
                place
                for place, line in enumerate(project.script.lines)
                if line.text and not line.locked and before[line.speaker] != now[line.speaker]
            ]
            return self._keeping_takes(number, project, after, places)

        name = Message("the voice of {who}", who=who or Message("the narrator"))
        return self.change(number, recast, name)

    def edit(
        self,
        number: str,
        work: Callable[[Script], Script],
        name: Message,
        check: Callable[[Project], object] = lambda project: None,
    ) -> OpenScript:
        """Change the lines; earlier takes of changed lines are kept. `check` may refuse it."""

        def edited(project: Project) -> Project:
            check(project)
            after = self._with_script(project, work(project.script))
            return self._keeping_takes(number, project, after)

        return self.change(number, edited, name)

    def pick_take(self, number: str, line: int, key: str) -> OpenScript:
        """Use an earlier take for a line.

        Its seed is enough where nothing else has changed since; else the line is locked to it.
        """
        opened = self.open(number)
        found = opened.script.line(line)
        name = Message("the take of line {place}", place=opened.script.place(line) + 1)
        take = next((each for each in opened.takes(found) if each.key == key), None)
        if take is None:
            raise InvalidText("This take is gone. Press Regenerate to make another.")
        seeded = None if found.locked else redo(opened.script, line, take.seed)
        if seeded:
            job = self._opened(number, opened.project.having(script=seeded), False).job(line)
            if key in (job.key, job.natural):
                return self.edit(number, lambda script: redo(script, line, take.seed), name)
        voice = take.voice or opened.project.casting.heard_in(found)
        return self.edit(number, lambda script: lock(script, line, key, voice), name)

    def undo(self, number: str) -> OpenScript:
        """Restore everything but the title, the takes and what is known of voices."""
        with self._lock:
            if number not in self._past:
                raise InvalidText("There is nothing to undo.")
            now, before = self._load(number), self._past.latest(number)
            issued = max(now.script.issued, before.script.issued)  # takes are found by line id
            script = before.script.model_copy(update={"issued": issued})
            digests = {**before.casting.digests, **now.casting.digests}
            casting = before.casting.having(digests=digests)
            before = before.having(title=now.title, script=script, casting=casting, takes=now.takes)
            saved = self._projects.save(number, self._keeping_takes(number, now, before))
            self._past.drop_latest(number)
        return self._opened(number, saved, changed=True)

    def read(self, number: str, text: str, delivery: Delivery = PLAINLY) -> OpenScript:
        """Parse typed text into a new script with this delivery, or into an existing one."""
        if not number:
            script = self._reader.typed(text, delivery.manner, moods=self._mood_words())
            return self._create("", script, delivery=delivery)
        new = self._parsed(self._load(number), text)

        def anew(project: Project) -> Project:
            script = revise(project.script, new)
            return self._keeping_takes(number, project, self._with_script(project, script))

        return self.change(number, anew, Message("the text"))

    def unsaved(
        self, text: str, casting: Casting, delivery: Delivery, sounds: LineAudio
    ) -> OpenScript:
        """A script that is in no list, to be rendered once."""
        moods = self.choices().moods.words()
        script = self._reader.typed(text, speakers=tuple(casting.voices), moods=moods.keys())
        cast = resolve_cast(script.speakers, casting, self.resolve)
        jobs = plan(script, cast, delivery, moods=moods)
        title = title_of(script, moods)
        project = Project(title=title, script=script, casting=casting, delivery=delivery)
        return OpenScript("", project, jobs, sounds)

    def fork(self, number: str, text: str) -> OpenScript:
        """A copy with this text, as another tab has changed the original."""
        project = self._load(number)
        script = revise(project.script, self._parsed(project, text))
        fresh = self._with_script(project, script)
        return self.open(
            self._projects.copy(number, fresh.having(title=f"{project.title[:190]} (2)"))
        )

    def receive(self, path: Path, taken: Collection[str] = ()) -> OpenScript:
        """A new script from an uploaded file, or a project; `taken`: titles that others have."""
        if path.suffix.lower() != PROJECT_SUFFIX:
            found = self._reader.script(path)
            named = plain(found.book.title) or plain(PurePath(path).stem)
            title = named or title_of(found.script, self._mood_words())
            return self._create(free_title(title, taken), found.script, found)

        def fill(folder: Path) -> Project:
            project = self._reader.project(path, folder)
            return project.having(title=free_title(project.title, taken), deleted=None)

        return self.open(self._projects.adopt(fill))

    def save_project(self, number: str, folder: Path, name: str) -> Path:
        """Write the whole project as one file into a folder."""
        opened = self.open(number)
        if opened.sounds is None:
            raise RequestError("There is nothing to export yet. Write a text and press Speak.")
        path = folder / f"{name}{PROJECT_SUFFIX}"
        return export_project(path, opened.project, opened.jobs, opened.sounds, opened.cover)

    def take_in(self, number: str, places: Collection[int]) -> OpenScript:
        """Read parts of the book that were left out."""

        def taken(project: Project) -> Project:
            reading = project.delivery.manner
            script, left = take_in(project.script, project.left_out, places, reading)
            after = self._with_script(project.having(left_out=left), script)
            return self._keeping_takes(number, project, after)

        return self.change(number, taken, Message("parts of the book"))

    def rename(self, number: str, title: str) -> OpenScript:
        named = plain(title)
        if not named:
            raise InvalidText("Give the script a name.")
        with self._lock:
            project = self._projects.open(number).having(title=named)
            return self._opened(number, self._projects.save(number, project))

    def deliver(self, number: str, work: Callable[[Delivery], Delivery]) -> OpenScript:
        """Change the reading settings."""
        changed = Message("the reading settings")
        return self.change(
            number, lambda project: project.having(delivery=work(project.delivery)), changed
        )

    def forget_left_out(self, number: str) -> OpenScript:
        """Drop the list of a book's parts that were left out."""
        name = Message("the list of parts")
        return self.change(number, lambda project: project.having(left_out=()), name)

    def delete(self, number: str) -> str:
        """Move a script to the trash; returns its title."""
        title = self._projects.open(number).title
        self._projects.delete(number)
        return title

    def restore(self, number: str) -> OpenScript:
        self._projects.restore(number)
        return self.open(number)

    def job_with(self, number: str, line: int, seed: int) -> Job:
        """The job of a line with another seed, in the voice of the sound that it has; nothing is
        saved. Raises UnknownVoice."""
        project = self._load(number)
        spoken = project.script.line(line)
        voice = project.casting.heard_in(spoken)
        self.resolve(voice)
        project = project.having(casting=project.casting.with_voice(spoken.speaker, voice))
        script = redo(unlock(project.script, line), line, seed)
        return self._opened(number, project.having(script=script), False).job(line)

    # Retention.

    def tidy(self, superseded_days: float) -> None:
        """Delete scripts that were in the trash for TRASH, and audio unused for so many days."""
        unused = superseded_days * DAY
        self._projects.purge(TRASH)
        for summary in self._projects.listed():
            with suppress(RequestError, OSError):  # deleted meanwhile
                self._drop_superseded(summary.id, unused)

    def _drop_superseded(self, number: str, older_than: float) -> None:
        sounds = self._projects.sounds(number)
        with self._lock:  # no change brings a sound back meanwhile
            states = [self._projects.open(number), *self._past.states(number)]
            project, *past = map(self._rekeyed, states)
            lines = {line.id for state in (project, *past) for line in state.script.lines}
            takes = {take.key for line in lines for take in project.takes.get(line, ())}
            used = takes | self._keys(project)
            due = self._projects.superseded(number, used, older_than)
            for key in due.difference(*map(self._keys, past)) if due else ():
                sounds.drop(key)

    def _keys(self, project: Project) -> set[str]:
        """Keys of the audio of all lines, whichever models are loaded, and of the music."""
        voices, digests = found_cast(project.casting, project.script.speakers, self.resolve)
        able: tuple[Collection[str], ...] = (project.script.speakers, ())
        moods = self.choices().moods.words()
        jobs = (
            plan(project.script, voices, project.delivery, digests, each, moods) for each in able
        )
        spoken = {key for each in jobs for job in each for key in (job.key, job.natural) if key}
        return spoken.union(cue.sound for cue in project.cues)

    # Voices.

    def resolve(self, name: str) -> Voice:
        return self.choices().read(name)

    def ready(self, number: str, line: int | None = None) -> OpenScript:
        """A script to be rendered, or one line to be regenerated.

        Raises UnknownVoice naming the speakers whose lines have no sound and no voice.
        """
        opened = self.open(number)
        project, sounds = opened.project, opened.sounds
        assert sounds is not None
        unmade = [job.line for job in opened.jobs if job.request and job.key not in sounds]
        lines = unmade if line is None else [line]
        speakers = dict.fromkeys(project.script.line(each).speaker for each in lines)
        resolve_cast(speakers, project.casting, self.resolve)
        self._remember_voices(number, project)
        return opened

    def _remember_voices(self, number: str, project: Project) -> None:
        """Save digests of the voices, so that their audio is found after they are deleted."""
        casting = project.casting
        held = {*casting.voices_of(project.script.speakers).values()}
        found = {key: found_voice(key, self.resolve) for key in held}
        there = {key: voice for key, voice in found.items() if voice is not MISSING}
        fresh = {key: voice_digest(voice) for key, voice in there.items()}
        if fresh.items() <= casting.digests.items():
            return
        with self._lock:
            now = self._load(number)
            digests = {**now.casting.digests, **fresh}
            self._projects.save(number, now.having(casting=now.casting.having(digests=digests)))

    def _load(self, number: str) -> Project:
        project = self._projects.open(number)
        if project.deleted is not None:
            raise RequestError("This script was deleted. Restore it, or open another one.")
        return self._rekeyed(project)

    def _rekeyed(self, project: Project) -> Project:
        return project.having(casting=project.casting.rekeyed(self.choices().key))

    def _keeping_takes(
        self, number: str, before: Project, after: Project, places: Sequence[int] | None = None
    ) -> Project:
        """`after` with the takes that its changed lines had before; `places`: which lines these
        are in `before`."""
        changed = changed_lines(before.script, after.script) if places is None else places
        if not changed:
            return after
        planned = self._planned.get(number)
        fresh = planned is not None and planned.changed == before.changed
        jobs = planned.jobs if planned and fresh else self._opened(number, before, False).jobs
        sounds = self._projects.sounds(number)
        keys = [(place, spoken_key(jobs[place], sounds)) for place in changed]
        lines = before.script.lines
        had = [
            (lines[place].id, take_of(lines[place], key, before.casting))
            for place, key in keys
            if key
        ]
        return after.having(takes=with_takes(after.takes, had)) if had else after

    def _opened(
        self, number: str, project: Project, remember: bool = True, changed: bool = False
    ) -> OpenScript:
        voices, digests = found_cast(project.casting, project.script.speakers, self.resolve)
        refusal = self.choices().refusal
        able = frozenset(
            who
            for who, voice in voices.items()
            if isinstance(voice, Preset) and not refusal(voice.name)
        )
        moods = self.choices().moods.words()
        jobs = plan(project.script, voices, project.delivery, digests, able, moods)
        named = {word: mood.name for word, mood in moods.items()}
        planned = _Plan(project.changed, jobs, able, named)
        if remember:
            with self._lock:
                _remember(self._planned, number, planned)
        if changed:
            self.on_change(number)
        return self._of(number, project, planned)

    def _of(self, number: str, project: Project, planned: _Plan) -> OpenScript:
        sounds, cover = self._projects.sounds(number), self._projects.cover(number)
        return OpenScript(number, project, planned.jobs, sounds, planned.able, cover, planned.moods)

    def _first_cast(self, script: Script, default: str) -> Casting:
        notes = {choice.key: choice.note for choice in self.choices().list()}
        return suggest(script, dict(self.voices()), default, notes)

    def _parsed(self, project: Project, text: str) -> Script:
        """A typed text, read with the project's settings."""
        speakers = project.script.speakers
        return self._reader.typed(text, project.delivery.manner, speakers, self._mood_words())

    def _mood_words(self) -> Collection[str]:
        return self.choices().moods.words().keys()

    def _with_script(self, project: Project, script: Script) -> Project:
        """The project with another script: new speakers get voices, music stays with its lines."""
        project = project.having(cues=followed(project.cues, project.script, script))
        cast = {who.casefold() for who in project.casting.voices}  # names are compared without case
        if all(who.casefold() in cast for who in script.speakers if who):
            return project.having(script=script)
        first = self._first_cast(script, project.casting.default).voices
        fresh = {who: voice for who, voice in first.items() if who.casefold() not in cast}
        casting = project.casting.having(voices={**fresh, **project.casting.voices})
        return project.having(script=script, casting=casting)

    def _create(
        self,
        title: str,
        script: Script,
        found: Imported | None = None,
        delivery: Delivery = PLAINLY,
    ) -> OpenScript:
        casting = self._first_cast(script, self.voices()[0][1])
        named = plain(title) or plain(title_of(script, self._mood_words()))
        project = Project(title=named, script=script, casting=casting, delivery=delivery)
        if found is None:
            return self.open(self._projects.create(project))
        language = language_named(found.book.language)
        if language in self.choices().languages():
            project = project.having(delivery=project.delivery.having(language=language))
        project = project.having(book=found.book, left_out=found.left_out)
        return self.open(self._projects.create(project, base64.b64decode(found.cover)))


def _labelled(voices: Iterable[Choice]) -> list[tuple[str, str]]:
    return [(voice.label, voice.key) for voice in voices] or [("The model's own", "")]


def _remember(known: dict[str, _Plan], number: str, value: _Plan) -> None:
    """Add as the latest; the oldest is dropped above a limit."""
    known.pop(number, None)
    known[number] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]
