"""What other cards would get: the compiler's words, and limits."""

from __future__ import annotations

import ctypes

import pytest

from bench.gpu.cards import (
    CARDS,
    Card,
    Source,
    Usage,
    compile_usage,
    find_compiler,
    misfits,
    read_usage,
    sources,
    talker_of,
)
from engine.checkpoints.checkpoint import SpecialIds

LOG = """ptxas info    : Compiling entry function 'gate' for 'sm_86'
ptxas         .     0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem, 496 bytes cmem[0]
ptxas info    : Compiling entry function 'draw_rows' for 'sm_86'
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 158 registers, used 0 barriers, 504 bytes cmem[0]
"""
CARD = Card("small", (8, 6), 28, 101_376, 12)
IDS = SpecialIds(*range(12))


def test_what_a_kernel_takes_is_read_from_the_compiler() -> None:
    assert read_usage(LOG) == [Usage("gate", 40, 256, 20), Usage("draw_rows", 158, 0, 0)]


def test_kernels_that_do_not_fit_are_named() -> None:
    source = Source("gate", (), {}, 101_000, 512)
    assert misfits(Usage("gate", 40, 256, 0), source, CARD) == []
    assert len(misfits(Usage("gate", 255, 512, 0), source, CARD)) == 2


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_every_card_samples_the_predictor_by_kernels(card: Card) -> None:
    names = [source.name for source in sources(talker_of("1.7B"), IDS, card)]
    assert "predictor, tiled" in names
    one_launch = [name for name in names if name.startswith("predictor, one launch")]
    assert bool(one_launch) == (card.capability >= (9, 0))


ARCHITECTURES = {card.architecture: card for card in CARDS}.values()


@pytest.fixture(scope="module")
def compiler() -> ctypes.CDLL:
    found = find_compiler()
    if found is None:
        pytest.skip("NVRTC is not here: pip install nvidia-cuda-nvrtc")
    return found


@pytest.mark.parametrize(
    "card",
    [
        pytest.param(card, marks=pytest.mark.slow if card.capability >= (9, 0) else ())
        for card in ARCHITECTURES
    ],
    ids=lambda card: card.name,
)
def test_every_source_compiles_and_fits(card: Card, compiler: ctypes.CDLL) -> None:
    for source in sources(talker_of("1.7B"), IDS, card):
        usages = compile_usage(source, card, compiler)
        assert usages, source.name
        for usage in usages:
            assert misfits(usage, source, card) == [], source.name
            assert usage.spilled == 0, f"{source.name}: {usage.kernel}"
