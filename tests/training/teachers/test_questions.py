"""Questions that are answered by yes or no rise at their end, others do not."""

from __future__ import annotations

import torch

from training.teachers.speak import asks_yes_or_no, raise_end


def test_which_questions_rise() -> None:
    for text in ("Is it ready?", "You saw him?", '"Did you lock it?"', "Wait. Are you sure?"):
        assert asks_yes_or_no(text)
    for text in ("Where is it?", "It is ready.", "And how did it go?", "Is it ready? Yes."):
        assert not asks_yes_or_no(text)


def test_the_end_rises_and_what_was_before_stays() -> None:
    phonemes = "ɪz ɪt ɹˈɛdi?"
    frames = torch.full((len(phonemes) + 2,), 4)
    pitch = torch.full((2 * int(frames.sum()),), 120.0)
    pitch[70:72] = 0.0  # not voiced
    before = pitch.clone()
    raise_end(pitch, frames, phonemes)
    early = 5  # sounds are heard so many before their place
    start = 2 * 4 * (phonemes.index("ˈ") + 1) - early
    assert torch.equal(pitch[:start], before[:start])
    end = 2 * 4 * (len(phonemes))
    assert pitch[start] < 120
    # Not the very end alone, which is half silent, but all that is heard of the last sound.
    last = pitch[end - early - 8 : end]
    assert (last[last > 0] > 120 * 2 ** (5 / 12)).all()
    assert (pitch[70:72] == 0).all()
    assert torch.equal(pitch[end:], before[end:])
