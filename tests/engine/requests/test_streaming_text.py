"""Open text: what is accepted, what is refused, and when it ends."""

from __future__ import annotations

import time

import numpy as np
import pytest

from engine import EngineSettings, InvalidText, Preset, SpeechRequest
from engine.plan import Frame, Prompt, ReferencePrompt, ResolvedSampling, StepResult
from engine.requests.input_processor import InputProcessor
from engine.requests.sequence import Sequence, TextPiece
from engine.requests.streaming_text import StreamingText
from engine.scheduler.scheduler import Scheduler
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from engine.testing.fake_engine import VirtualClock
from engine.text.sentences import letters
from engine.text.spoken_form import SpokenForm, spoken_form
from engine.types import FRAME_SAMPLES

SLOW = Costs(step=0.01)


def engine(costs: Costs | None = None, **settings: object) -> FakeEngine:
    return FakeEngine(costs=costs, settings=EngineSettings(**{"max_num_seqs": 4, **settings}))


def request(words: str = "hello there", **more: object) -> SpeechRequest:
    return SpeechRequest(words, Preset("ryan"), **more)


def test_text_that_is_whole_takes_no_more():
    with engine() as fake:
        stream = fake.submit(request())
        with pytest.raises(InvalidText, match="open_text"):
            stream.append("more")
        with pytest.raises(InvalidText, match="open_text"):
            stream.close_text()


def test_text_that_is_closed_takes_no_more():
    with engine() as fake:
        stream = fake.submit(request("one", open_text=True))
        stream.close_text()
        stream.close_text()
        with pytest.raises(InvalidText, match="closed"):
            stream.append("more")
        assert stream.collect().size == 3 * FRAME_SAMPLES


def test_bad_additions_are_refused_and_the_rest_is_spoken():
    with engine(max_text=20) as fake:
        stream = fake.submit(request("one ", open_text=True))
        with pytest.raises(InvalidText, match="U\\+0007"):
            stream.append("ding\a")
        with pytest.raises(InvalidText, match="parts"):
            stream.append("x" * 17)
        stream.append("two")
        stream.close_text()
        assert stream.collect().size == 7 * FRAME_SAMPLES


def test_an_open_text_closed_empty_was_no_request():
    with engine() as fake:
        stream = fake.submit(request("", open_text=True))
        stream.close_text()
        with pytest.raises(InvalidText, match="no text"):
            stream.collect()


def test_more_text_than_a_slot_holds_is_spoken_in_several_runs():
    settings = EngineSettings(max_num_seqs=1)
    with FakeEngine([FakeCheckpoint(max_positions=130)], settings) as fake:
        stream = fake.submit(request("one ", open_text=True))
        stream.append("word " * 40)
        stream.close_text()
        assert 195 <= stream.collect().size / FRAME_SAMPLES < 204  # but for spaces at joints
        assert stream.end.reason == "finished"


class Wordy(FakeCheckpoint):
    """Five ids a character, so that letters say little about ids."""

    def text_ids(self, text: str) -> tuple[int, ...]:
        return tuple(ord(mark) for mark in text for _ in range(5))


def test_more_ids_than_a_slot_holds_are_cut_and_told():
    settings = EngineSettings(max_num_seqs=1)
    with FakeEngine([Wordy(max_positions=100)], settings) as fake:
        stream = fake.submit(request("one ", open_text=True))
        with pytest.raises(InvalidText, match="left out"):
            stream.append("word " * 40)
        frames = stream.collect().size // FRAME_SAMPLES
        assert 60 < frames < 100
        assert stream.end.reason == "finished"
        with pytest.raises(InvalidText, match="closed"):
            stream.append("more")


def test_an_open_text_may_end_before_its_writer_does():
    with engine() as fake:
        stream = fake.submit(request("one two ", open_text=True, max_frames=3))
        assert stream.collect().size == 3 * FRAME_SAMPLES
        stream.append("three ")  # no error
        stream.close_text()
        assert stream.end.reason == "length"
        assert fake.submit(request()).collect().size


def test_an_open_text_that_is_closed_late_ends():
    """A reference with many words and few frames: more is spoken than the text itself may take."""
    scheduler, random = Scheduler(EngineSettings(pipeline_depth=1)), np.random.default_rng(0)
    scheduler.slots.add("talker", range(1))
    spoken = ReferencePrompt("key", tuple(range(260)), np.zeros((38, 16), np.int64))
    prompt = Prompt((1, 2), "streamed", open_text=True, role_ids=(1, 2, 3), reference=spoken)
    draw = ResolvedSampling(False, 1, 50, 1, 1, False, 1, 50, 1)
    sequence = Sequence(1, "talker", prompt, draw, 7, 0.0, "english", max_frames=2000)
    scheduler.add(sequence)
    for turn in range(500):
        now = turn * 0.02
        if turn == 300:
            assert sequence.needs_text
            scheduler.append(sequence, TextPiece((5, 6), ends_text=True), now)
        if plan := scheduler.plan(now):
            made = {slot: Frame(random.integers(0, 2000, 16), False) for slot in plan.decode}
            scheduler.commit(StepResult(plan.number, 0.02, made), now)
            sound = {
                due.slot: random.integers(-9000, 9000, (due.stop - due.start) * FRAME_SAMPLES)
                for due in plan.codec_decode
            }
            scheduler.commit_audio(plan.number, sound, now)
    assert not scheduler.active


@pytest.mark.parametrize("text", ["a. ", "Mr. ", "… "])
def test_marks_that_end_nothing_are_read_in_time(text: str):
    streaming = StreamingText(FakeCheckpoint(), 200_000, 400, 100_000)
    begun = time.process_time()
    streaming.first((text * 10_000)[:10_000])
    assert time.process_time() - begun < 2  # 5 to 15 s, when each mark looked at all that follows


CHINESE = "今天的天气非常好我们去公园散步看到了很多美丽的花朵。" * 8
LIST = "A list of the things that should be remembered before the departure of tomorrow\n" * 6
ENGLISH = "A sentence of about fifty letters stands here now. " * 8 + "🙂"


def groups(text: str, size: int, longest: int = 240) -> list[str]:
    """What is spoken in each run of a text that comes in pieces of `size`."""
    streaming = StreamingText(FakeCheckpoint(), 100_000, longest, 4000)
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    pieces = [streaming.first(parts[0])]
    streaming.connect(pieces.append)
    for part in parts[1:]:
        streaming.append(part)
    streaming.close()
    found = [""]
    for piece in pieces:
        found[-1] += "".join(map(chr, piece.ids))
        if piece.ends_group:
            found.append("")
    return found


@pytest.mark.parametrize("size", [1, 3, 7, 50])
@pytest.mark.parametrize("text", [CHINESE, LIST, ENGLISH], ids=["chinese", "list", "english"])
def test_pieces_of_any_size_are_cut_between_sentences_or_words(text: str, size: int):
    found = groups(text, size)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert len(found) > 1
    assert all(letters(each) for each in found)
    for each in found:
        assert each == each.strip()
        assert each in text
    if text != LIST:
        assert all(each[-1] in ".。" for each in found[:-1])


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_no_group_ends_after_an_abbreviation(size: int):
    text = "Everybody in the house had talked to Gen. Lee. " * 12
    found = groups(text, size, longest=60)
    assert {each.rstrip(".") for each in found} == {text[:45]}


@pytest.mark.parametrize("text", ["one ", " one two. ", "one\n"])
@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_text_of_one_run_keeps_its_ids(text: str, size: int):
    assert groups(text, size) == [text]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_text_of_the_next_group_gives_this_one_no_more_frames(depth: int):
    checkpoint = FakeCheckpoint(fake_capabilities(max_letters=60))
    settings = EngineSettings(max_num_seqs=4, pipeline_depth=depth)
    options = {"costs": SLOW, "clock": VirtualClock(), "start": False}
    fake = FakeEngine([checkpoint], settings, **options)
    fake.worker.frames_of = lambda admit, prompt: (
        10_000 if "RUN" in "".join(map(chr, prompt.text_ids)) else len(prompt.text_ids)
    )
    text = "A first sentence that is spoken well by the model. RUN away, this is the second of it. "
    stream = fake.submit(request(text + "Then a third begins ", open_text=True))
    for number in range(1200):
        fake.loop.run_once(wait=False)
        if stream.end is None:
            stream.append("and " if number % 8 else "so on. ")
    assert fake.stats().failed_steps == 0
    fake.close()


@pytest.mark.parametrize("size", [1, 4, 9])
def test_open_text_is_spelled_out_like_the_whole(size: int) -> None:
    text = "Capt. Ann paid £3.50 at 10:00 a.m. Then the 21st-century clock of Louis XIV fell."
    sent: list[TextPiece] = []
    checkpoint = FakeCheckpoint()
    stream = StreamingText(checkpoint, 1000, 1000, 4000, SpokenForm())
    sent.append(stream.first(""))
    stream.connect(sent.append)
    for at in range(0, len(text), size):
        stream.append(text[at : at + size])
    stream.close()
    assert tuple(each for piece in sent for each in piece.ids) == checkpoint.text_ids(
        spoken_form(text)
    )


@pytest.mark.parametrize("spell_out", [True, False])
def test_what_is_written_can_be_kept(spell_out: bool) -> None:
    checkpoint = FakeCheckpoint(fake_capabilities(spoken_form=True))
    processor = InputProcessor({"fake": checkpoint}, EngineSettings(), lambda: 0.0)
    sequence = processor.process(request("Pay $5.", spell_out=spell_out)).sequence
    spoken = "Pay five dollars." if spell_out else "Pay $5."
    assert sequence.prompt.text_ids == checkpoint.text_ids(spoken)


def test_an_alphabet_that_arrives_later_is_told_too() -> None:
    checkpoint = FakeCheckpoint(fake_capabilities(spoken_form=True))
    with (
        FakeEngine([checkpoint]) as engine,
        engine.submit(request("He said ", open_text=True)) as stream,
    ):
        assert stream.notices == ()
        stream.append("Привет ")
        assert "Cyrillic" in "".join(stream.notices)
        stream.append("to 你好.")
        (notice,) = stream.notices
        assert "Cjk" in notice
        assert "Cyrillic" in notice


def test_a_foreign_language_stays_told_when_an_alphabet_follows() -> None:
    able = fake_capabilities(spoken_form=True, languages=("english",))
    text = "Guten Morgen, wie geht es Ihnen heute? Ich habe das nicht gewusst. "
    german = request(text, open_text=True)
    with FakeEngine([FakeCheckpoint(able)]) as engine, engine.submit(german) as stream:
        assert len(stream.notices) == 1
        stream.append("Привет ")
        assert len(stream.notices) == 2
