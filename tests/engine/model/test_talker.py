"""Talker and predictor equal the reference; the heads give the same at once and one by one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.model.layers import Causal
from engine.model.talker import Talker
from engine.worker.loading.model_loader import load_talker
from tests.conftest import golden_folders
from tests.support.golden_cases import Case, speech_cases

CASES = speech_cases()


@cache
def talker(folder: Path) -> Talker:
    return load_talker(folder, torch.device("cpu"), torch.float32)


def inputs(case: Case) -> Tensor:
    """The reference's talker inputs: the prompt, then a row for each frame. [rows, width]"""
    codes, trailing = case.tensor("codes"), case.tensor("trailing")[0]
    padding = case.tensor("tts_pad")[0].expand(len(codes), -1)
    text = torch.cat((trailing, padding))[: len(codes)]
    return torch.cat((case.tensor("prefill")[0], talker(case.folder).embed_codes(codes) + text))


@torch.no_grad()
def hidden_states(case: Case) -> Tensor:
    """The hidden state of each frame: [frames, width]."""
    x = inputs(case)[None]
    states = talker(case.folder)(x, torch.arange(x.shape[1])[None], Causal())
    start = case.tensor("prefill").shape[1] - 1
    return states[0, start : start + case.frames]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_first_hidden_state_equals_the_references(case: Case) -> None:
    hidden = hidden_states(case)[:1]
    torch.testing.assert_close(hidden[None], case.tensor("first_hidden"), rtol=0, atol=1e-4)
    logits = talker(case.folder).logits(hidden)
    torch.testing.assert_close(logits, case.tensor("first_logits"), rtol=0, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_predictor_gives_the_references_codes(case: Case) -> None:
    """Greedy, from codebook 0: one pass a codebook, and all heads at once, given the codes."""
    codes, hidden, network = case.tensor("codes"), hidden_states(case), talker(case.folder)
    first = network.embed_first(codes[:, 0])
    made, total = network.code_predictor.sample(hidden, first, lambda _, logits: logits.argmax(-1))
    assert torch.equal(made, codes[:, 1:])
    assert torch.equal(network.predict(hidden, codes).argmax(-1), codes[:, 1:])
    torch.testing.assert_close(total, network.embed_codes(codes))


@pytest.mark.parametrize("folder", golden_folders(), ids=lambda folder: folder.name)
def test_training_and_sampling_give_the_same_logits(folder: Path) -> None:
    network, generator = talker(folder), torch.Generator().manual_seed(5)
    config, seen = network.config, []
    codes = torch.randint(config.predictor_vocab_size, (3, config.codebooks), generator=generator)
    hidden = torch.randn(3, config.transformer.hidden_size, generator=generator)

    def choose(book: int, logits: Tensor) -> Tensor:
        seen.append(logits)
        return codes[:, book]

    network.code_predictor.sample(hidden, network.embed_first(codes[:, 0]), choose)
    torch.testing.assert_close(
        torch.stack(seen, 1), network.predict(hidden, codes), rtol=1e-4, atol=1e-5
    )


def test_gradients_of_the_predictor_reach_every_codebook() -> None:
    """Gradients reach each head, each embedding but the last one's, and the hidden state."""
    config = talker(CASES[0].folder).config
    network = Talker(config)
    codes = torch.randint(config.predictor_vocab_size, (4, config.codebooks))
    hidden = torch.randn(4, config.transformer.hidden_size, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(
        network.predict(hidden, codes).flatten(0, 1), codes[:, 1:].flatten()
    )
    loss.backward()
    predictor = network.code_predictor
    assert hidden.grad is not None
    assert all(head.weight.grad.any() for head in predictor.lm_head)
    tables = predictor.model.codec_embedding
    assert all(table.weight.grad.any() for table in tables[:-1])
    assert tables[-1].weight.grad is None
