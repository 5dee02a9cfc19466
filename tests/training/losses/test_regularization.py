"""Encoding again changes codes, dropout is for training alone, held-out speech stays out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.layers import Causal
from engine.model.talker import Talker
from training import model_config
from training.batching import encoding_batches, talker_dataset
from training.batching.talker_dataset import CODE, FRAMES, SPEAKER, TEXT_LENGTH, TalkerDataset
from training.data.speakers import NAMED
from training.data.speech_format import FRAME, PHONE_STEP
from training.data.speech_pool import Segment, SpeechPool
from training.losses.regularization import add_dropout

MADE = len(NAMED)  # the number of a speaker without a name
LENGTH = 9 * FRAME


def pool_of(speakers: list[int]) -> SpeechPool:
    """Utterances of noise, end to end."""
    pool = SpeechPool.__new__(SpeechPool)
    noise = torch.randn(len(speakers) * LENGTH + FRAME) * 3000
    pool.device, pool.samples = torch.device("cpu"), noise.to(torch.int16)
    pool.phones = torch.zeros(len(noise) // PHONE_STEP, dtype=torch.uint8)
    pool.places = torch.zeros(len(noise) // PHONE_STEP, dtype=torch.int16)
    pool.segments = [
        Segment(at * LENGTH, (at + 1) * LENGTH, f"text {at}", who, 0)
        for at, who in enumerate(speakers)
    ]
    return pool


class Encoded:
    """A letter an id."""

    def __init__(self, text: str) -> None:
        self.ids = [7] * len(text)
        self.offsets = [(place, place + 1) for place in range(len(text))]


def listening() -> tuple[TalkerDataset, list[Tensor]]:
    """A library whose encoders write down what they hear."""
    heard: list[Tensor] = []

    def encode(wave: Tensor) -> Tensor:
        heard.append(wave)
        return torch.zeros(len(wave), wave.shape[1] // FRAME, 16, dtype=torch.long)

    made = TalkerDataset(
        lambda texts: [Encoded(text) for text in texts],
        SimpleNamespace(encode=encode, config=SimpleNamespace(codebooks=16)),  # type: ignore[arg-type]
        SimpleNamespace(  # type: ignore[arg-type]
            embed=lambda wave: torch.ones(len(wave), model_config.WIDTH),
            config=SimpleNamespace(embedding_dim=model_config.WIDTH),
        ),
        torch.device("cpu"),
    )
    return made, heard


@pytest.mark.parametrize("who", [0, MADE])
def test_an_utterance_taken_in_again_begins_elsewhere(who: int) -> None:
    torch.manual_seed(who)
    (books, heard), pool = listening(), pool_of([who])
    assert books.grow(pool) == 1
    for _ in range(5):
        books.reencode(pool, 1)
    begins = {int(wave[0].abs().gt(0.01).nonzero()[0]) for wave in heard}
    assert len(begins) == 6
    assert max(begins) < FRAME * (1 + talker_dataset.SPEED) + 9
    assert (books.table[:, SPEAKER] == who).all()
    assert (books.table[:, TEXT_LENGTH] == len("text 0")).all()
    longest = 10 if who < MADE else 11
    assert books.table[:, FRAMES].min() >= (9 if who < MADE else 8)
    assert books.table[:, FRAMES].max() <= longest
    for wave, frames in zip(heard, books.table[:, FRAMES].tolist(), strict=True):
        assert wave[0, frames * FRAME :].abs().max() < 0.05  # silence after the last frame


def test_without_a_speaker_encoder_voices_are_their_targets() -> None:
    (books, _), pool = listening(), pool_of([0, MADE])
    books.speaker = None
    books.grow(pool)
    books.reencode(pool, 3)
    assert torch.equal(books.vectors, books.targets)
    assert books.vectors[:2].unique(dim=0).shape[0] == 2


@pytest.mark.parametrize("speed", [0.94, 1.06])
def test_a_tone_goes_up_with_the_speed(speed: float) -> None:
    time = torch.arange(24_000) / 24_000
    tone = torch.sin(2 * torch.pi * 500 * time)[None]
    length = round(24_000 / speed)
    made = encoding_batches.resample(tone, length)
    assert made.shape == (1, length)
    loudest = int(torch.fft.rfft(made).abs().argmax()) * 24_000 / length
    assert loudest == pytest.approx(500 * speed, rel=0.01)
    assert float(made.std()) == pytest.approx(float(tone.std()), rel=0.01)


@pytest.mark.parametrize("who", [0, MADE])
def test_phones_are_where_they_are_heard(who: int) -> None:
    """Where phone 9 is, the wave is loud: so it must be however often it is taken in."""
    torch.manual_seed(5)
    (books, heard), pool = listening(), pool_of([who, who])
    pool.phones = torch.randint(0, 2, pool.phones.shape, dtype=torch.uint8) * 9
    loud = pool.phones.repeat_interleave(PHONE_STEP) > 0
    pool.samples = torch.where(loud, 20_000, 0).to(torch.int16)
    for _ in range(4):
        books.reencode(pool, 1)
    for wave, row in zip(heard, books.table.tolist(), strict=True):
        spoken = books.phones[row[CODE] : row[CODE] + row[FRAMES]].flatten()
        middles = wave[0][PHONE_STEP // 2 :: PHONE_STEP][: len(spoken)]
        assert ((middles > 0.3) == (spoken > 0)).float().mean() > 0.95


@pytest.mark.parametrize("who", [0, MADE])
def test_the_text_moves_on_with_the_sound(who: int) -> None:
    """Six letters, each as loud as its number, are said evenly over the nine frames."""
    torch.manual_seed(6)
    (books, heard), pool = listening(), pool_of([who])
    steps = LENGTH // PHONE_STEP
    pool.places[:steps] = (torch.arange(steps) * 6 // steps).to(torch.int16)
    loud = (pool.places.repeat_interleave(PHONE_STEP) + 1) * 4000
    pool.samples = loud.to(torch.int16)
    for _ in range(4):
        books.reencode(pool, 1)
    for wave, row in zip(heard, books.table.tolist(), strict=True):
        spoken = books.places[row[CODE] : row[CODE] + row[FRAMES]]
        middles = wave[0].view(-1, FRAME)[: len(spoken), FRAME * 5 // 8]
        inside = middles > 0.1
        assert (spoken[inside] == (middles[inside] * 32767 / 4000 - 1).round()).float().mean() > 0.7
        assert spoken.diff().min() >= 0
        assert spoken[0] <= 1
        assert spoken[-1] == 5


@settings(deadline=None)
@given(seed=st.integers(0, 99))
def test_places_are_found_as_one_would_by_hand(seed: int) -> None:
    torch.manual_seed(seed)
    texts = [Encoded("a" * int(length)) for length in torch.randint(1, 9, (3,))]
    letters = torch.randint(0, 12, (3, 5), dtype=torch.int16)
    found = encoding_batches.spoken_tokens(texts, letters)
    for text, row, each in zip(texts, letters, found, strict=True):
        assert each.tolist() == [min(int(letter), len(text.ids) - 1) for letter in row]


def test_dropout_is_for_training_alone() -> None:
    torch.manual_seed(0)
    plain, thinned = (Talker(model_config.talker_config()) for _ in range(2))
    thinned.load_state_dict(plain.state_dict())
    add_dropout(thinned, 0.5)
    x, positions = torch.randn(1, 5, model_config.WIDTH), torch.arange(5)[None]
    with torch.no_grad():
        same, other = (net.eval()(x, positions, Causal()) for net in (plain, thinned))
        torch.testing.assert_close(same, other)
        assert not torch.allclose(same, thinned.train()(x, positions, Causal()))
