"""A training batch must be laid out exactly as the engine lays out a prompt."""

from __future__ import annotations

import pytest
import torch

from engine.checkpoints.checkpoint import SpecialIds
from engine.model.talker import Talker
from engine.plan import Prompt, ReferencePrompt
from engine.worker.state.prompts import Embedder
from training import model_config
from training.batching import batches, embedding
from training.batching.batches import NONE, SIZES, Batch, Batcher, Instructions, TextIds
from training.batching.encoding_batches import TRAILING_SILENCE, Encoding
from training.batching.talker_dataset import (
    CODE,
    FRAMES,
    SPEAKER,
    STYLE,
    TEXT,
    TEXT_LENGTH,
    TalkerDataset,
)
from training.data.speakers import FIRST_OTHER, NAMED, TRAINED

UTTERANCES = 24
BASE = 1530
TEXT_IDS = TextIds(BASE + 3, BASE + 4, BASE + 5, [BASE + 1, 7, 8], [BASE + 1, 9, 8], [BASE + 2, 8])
IDS = model_config.IDS
SPECIAL = SpecialIds(
    im_start=BASE + 1,
    im_end=BASE + 2,
    tts_pad=TEXT_IDS.pad,
    tts_bos=TEXT_IDS.bos,
    tts_eos=TEXT_IDS.eos,
    codec_pad=IDS["codec_pad_id"],
    codec_bos=IDS["codec_bos_id"],
    codec_eos=IDS["codec_eos_token_id"],
    think=IDS["codec_think_id"],
    nothink=IDS["codec_nothink_id"],
    think_bos=IDS["codec_think_bos_id"],
    think_eos=IDS["codec_think_eos_id"],
)


def fake_ids(texts: list[str]) -> list[Encoding]:
    return [Letters(text) for text in texts]


class Letters:
    """A letter an id, as a tokenizer would tell of it."""

    def __init__(self, text: str) -> None:
        self.ids = [20 + ord(letter) for letter in text[:9]]
        self.offsets = [(place, place + 1) for place in range(len(self.ids))]


def make_dataset() -> TalkerDataset:
    """A library of random texts, codes and vectors: no sound is needed for a layout."""
    dataset = TalkerDataset.__new__(TalkerDataset)
    dataset.device = torch.device("cpu")
    texts = torch.randint(2, 12, (UTTERANCES,))
    frames = texts + torch.randint(3, 15, (UTTERANCES,))  # so that no text is cut off
    kept = frames + TRAILING_SILENCE
    table = torch.zeros(UTTERANCES, 6, dtype=torch.long)
    table[:, TEXT], table[:, TEXT_LENGTH] = texts.cumsum(0) - texts, texts
    table[:, CODE], table[:, FRAMES] = kept.cumsum(0) - kept, frames
    some = torch.tensor([0, 1, len(NAMED), FIRST_OTHER])
    table[:, SPEAKER] = some[torch.randint(0, 4, (UTTERANCES,))]
    table[:, STYLE] = torch.randint(0, 4, (UTTERANCES,))
    table[:8, STYLE] = 0
    dataset.text = torch.randint(0, BASE, (int(texts.sum()),))
    dataset.codes = torch.randint(0, 256, (int(kept.sum()), 16), dtype=torch.uint8)
    dataset.phones = torch.randint(0, 40, (int(kept.sum()), 4), dtype=torch.uint8)
    spoken = [torch.linspace(0, n - 1, m).long() for n, m in zip(texts, kept, strict=True)]
    dataset.places = torch.cat(spoken).to(torch.int16)
    dataset.vectors = torch.randn(UTTERANCES, model_config.WIDTH)
    dataset.targets = torch.randn(UTTERANCES, model_config.WIDTH)
    dataset.speeds = 0.94 + 0.12 * torch.rand(UTTERANCES)
    dataset.table = table
    return dataset


def make_batcher(dataset: TalkerDataset) -> Batcher:
    """With two wordings of each instruction: all of them take seconds to be written."""
    instructions = Instructions(fake_ids, TEXT_IDS, dataset.device, wordings=2)
    batcher = Batcher(dataset, instructions, TEXT_IDS)
    batcher.refresh()
    return batcher


def read_prompt(batch: Batch, row: int) -> tuple[Prompt, int]:
    """The engine's prompt of a row, found by looking at the row alone, and its frames."""
    text, code, fed = batch.text[row], batch.code[row], batch.fed[row]
    role = int((text == TEXT_IDS.role[0]).nonzero()[-1])
    pads = (code == IDS["codec_pad_id"]).nonzero()[:, 0]
    bos = int((code == IDS["codec_bos_id"]).nonzero()[0])
    whole = len(pads) > 1
    frames = int((batch.target[row][:, 0] != NONE).sum())
    fed = fed[fed[:, 0] != NONE]
    reference = fed[: len(fed) - frames]
    start = int(pads[1]) if whole else bos
    spoken = text[start:]
    spoken = spoken[: int((spoken == TEXT_IDS.eos).nonzero()[0])].tolist()
    voiced = bool(batch.speaker[row].any())
    split = len(spoken) // 2 if len(reference) else 0
    return Prompt(
        text_ids=tuple(spoken[split:]),
        layout="whole" if whole else "streamed",
        instruct_ids=tuple(text[:role].tolist()),
        role_ids=tuple(TEXT_IDS.role),
        language_id=model_config.ENGLISH if bool((code == model_config.ENGLISH).any()) else None,
        vector=batch.vector[row].numpy() if voiced else None,
        reference=ReferencePrompt("r", tuple(spoken[:split]), reference.numpy())
        if len(reference)
        else None,
    ), frames


def expected(talker: Talker, prompt: Prompt, target: torch.Tensor) -> torch.Tensor:
    """Prompt and target rows as the engine would feed them, one after the other."""
    embedder = Embedder(talker, SPECIAL)
    (laid,) = embedder.layout([prompt])
    frames = talker.embed_codes(target)
    left = laid.track_ids[len(laid) - laid.body :]  # of the text, beside the target's frames
    text = talker.embed_text(torch.tensor(left, dtype=torch.long))
    text = torch.cat((text, embedder.pad.expand(len(frames), -1)))
    return torch.cat((laid.embed(0, len(laid)), frames + text[: len(frames)]))


@pytest.mark.parametrize("in_context", [False, True])
def test_a_batch_equals_the_engines_layout(
    monkeypatch: pytest.MonkeyPatch, in_context: bool
) -> None:
    torch.manual_seed(int(in_context))
    monkeypatch.setattr(embedding, "WRONG_FIRST", 0.0)
    monkeypatch.setattr(embedding, "WRONG_REST", 0.0)
    dataset = make_dataset()
    batcher = make_batcher(dataset)
    talker = Talker(model_config.talker_config()).eval()
    with torch.no_grad():
        batch = batcher.draw(UTTERANCES, in_context, 160, batcher.order)
        rows = embedding.embed(talker, batch)
        for row in range(UTTERANCES):
            prompt, frames = read_prompt(batch, row)
            there = batch.target[row][:, 0] != NONE
            wanted = expected(talker, prompt, batch.target[row][there])
            torch.testing.assert_close(rows[row, : len(wanted)], wanted)
            assert (batch.text[row, len(wanted) :] == NONE).all()
            first = int(there.nonzero()[0])
            assert first == len(prompt) - 1  # the prompt's last row predicts the first frame
            tape = (dataset.codes == batch.target[row][there][0]).all(1).nonzero()[0, 0]
            spoken = dataset.phones[int(tape) : int(tape) + frames]
            torch.testing.assert_close(batch.phones[row][there], spoken)
            assert batch.ends[row].nonzero().tolist() == [[first + frames]]
            number = dataset.places[int(tape) : int(tape) + frames]
            tokens = dataset.text[dataset.table[dataset.table[:, CODE] == tape, TEXT] + number]
            assert_says(batch, row, tokens)


def assert_says(batch: Batch, row: int, tokens: torch.Tensor) -> None:
    """The rows a frame is said by hold the text `own` that is said in it, the last the end."""
    there = (batch.target[row][:, 0] != NONE) | batch.ends[row]
    text = torch.cat((tokens, torch.tensor([TEXT_IDS.eos])))
    spoken_row = batch.spoken_row[row][there]
    known = spoken_row != NONE
    assert (batch.text[row][spoken_row[known]] == text[known]).all()
    assert (spoken_row <= there.nonzero()[:, 0]).all()
    assert known[-1]
    assert (batch.spoken_row[row][~there] == NONE).all()


@pytest.mark.parametrize("in_context", [False, True])
def test_a_batch_of_one_size_holds_whole_utterances(in_context: bool) -> None:
    torch.manual_seed(3)
    dataset = make_dataset()
    batcher = make_batcher(dataset)
    drawn = [batcher.draw_size(1024, in_context) for _ in range(24)]
    for batch in drawn:
        rows = batch.text.numel()
        assert rows == pytest.approx(1024, abs=batch.text.shape[1])
        assert batch.ends.any(1).all()
    sizes = {batch.text.shape[1] for batch in drawn}
    assert sizes <= {size.in_context if in_context else size.alone for size in SIZES}


def test_voices_of_other_styles_are_said_in_context_alone_and_named_ones_never() -> None:
    dataset = make_dataset()
    alone, in_context = map(torch.cat, zip(*make_batcher(dataset).sizes, strict=True))
    speakers = dataset.table[:, SPEAKER]
    assert set(speakers[alone].tolist()) == {0, 1, len(NAMED)}
    assert set(speakers[in_context].tolist()) == {len(NAMED), FIRST_OTHER}


@pytest.mark.parametrize("is_target", [False, True])
def test_a_vector_is_the_target_or_misread_as_another_utterance(
    monkeypatch: pytest.MonkeyPatch, is_target: bool
) -> None:
    monkeypatch.setattr(batches, "TARGET_SHARE", float(is_target))
    dataset = make_dataset()
    batcher = make_batcher(dataset)
    batch = batcher.draw(UTTERANCES, False, 160, batcher.order)
    misread = dataset.vectors - dataset.targets
    for row in range(UTTERANCES):
        target = utterance_of(dataset, batch.target[row][batch.target[row][:, 0] != NONE][0])
        off = batch.vector[row] - dataset.targets[target]
        theirs = misread[dataset.table[:, SPEAKER] == dataset.table[target, SPEAKER]]
        nearest = off.norm() if is_target else (off - theirs).norm(dim=1).min()
        assert nearest < 1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_some_vectors_in_context_are_on_the_way_to_another_voice(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr(batches, "MISTAKEN_SHARE", share)
    dataset = make_dataset()
    batcher = make_batcher(dataset)
    batch = batcher.draw(UTTERANCES, True, 256, batcher.order)
    away = []
    for row in range(UTTERANCES):
        target = utterance_of(dataset, batch.target[row][batch.target[row][:, 0] != NONE][0])
        theirs = dataset.vectors[dataset.table[:, SPEAKER] == dataset.table[target, SPEAKER]]
        away.append(float((batch.vector[row] - theirs).norm(dim=1).min()))
    length = float(dataset.vectors.norm(dim=1).mean())
    if share:
        assert 0.1 * length < sum(away) / len(away) < batches.MISTAKEN_WAY * length
    else:
        assert max(away) == 0


def test_nobody_is_described_who_speaks_in_a_manner_of_his_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "DESIGN_SHARE", 1.0)
    dataset = make_dataset()
    batcher = make_batcher(dataset)
    batch = batcher.draw(UTTERANCES, False, 160, torch.arange(UTTERANCES))
    for row in range(UTTERANCES):
        target = utterance_of(dataset, batch.target[row][batch.target[row][:, 0] != NONE][0])
        assert bool(batch.speaker[row].any()) == bool(dataset.table[target, STYLE])


def test_a_reference_is_the_utterance_that_is_about_as_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "REFERENCE_CANDIDATES", 200)
    dataset = make_dataset()
    batcher = make_batcher(dataset)
    batch = batcher.draw(UTTERANCES, True, 160, batcher.order)
    for row in range(UTTERANCES):
        there = batch.target[row][:, 0] != NONE
        fed_back = batch.fed[row][batch.fed[row][:, 0] != NONE]
        spoken, shown = (
            utterance_of(dataset, frames[0]) for frames in (batch.target[row][there], fed_back)
        )
        same = dataset.table[batcher.order, SPEAKER] == dataset.table[spoken, SPEAKER]
        others = [int(each) for each in batcher.order[same] if each != spoken] or [spoken]
        speeds = dataset.speeds
        assert shown == min(others, key=lambda each: float(abs(speeds[each] - speeds[spoken])))


def utterance_of(dataset: TalkerDataset, frame: torch.Tensor) -> int:
    """The utterance that begins with this frame."""
    tape = (dataset.codes == frame).all(1).nonzero()[0, 0]
    return int((dataset.table[:, CODE] == tape).nonzero()[0, 0])


def test_every_speaker_is_described() -> None:
    instructions = Instructions(fake_ids, TEXT_IDS, torch.device("cpu"), wordings=2)
    assert len(instructions.length) == TRAINED + 4
    assert int(instructions.length.min()) > len(TEXT_IDS.user) + len(TEXT_IDS.close)


@pytest.mark.parametrize("in_context", [False, True])
def test_a_blank_batch_has_the_shapes_of_a_drawn_one(in_context: bool) -> None:
    dataset = make_dataset()
    batcher = make_batcher(dataset)
    drawn = batcher.draw(3, in_context, 64, batcher.order)
    for one, other in zip(
        batches.blank(3, 64, dataset.device).tensors(), drawn.tensors(), strict=True
    ):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
