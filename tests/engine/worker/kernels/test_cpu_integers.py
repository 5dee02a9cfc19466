"""Products of integers are the same numbers by whatever instructions a processor has for them, and
all tests of 4 bits hold for those that this one would not take."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from llvmlite.binding import get_host_cpu_features
from torch import nn

from engine.model.quantized_linear import GROUP, QuantizedLinear
from engine.worker.kernels.cpu import amx, integers, nibbles
from engine.worker.kernels.cpu.layers import Rounded
from engine.worker.kernels.cpu.row_products import RowProducts
from engine.worker.kernels.cpu.threads import ThreadTeam

ROOT = Path(__file__).parents[4]
AVX2 = "+avx2,+fma,+f16c,+bmi,+bmi2,+popcnt,+lzcnt,+sse4.2"
# what numba is told to use, and the instruction that multiplies levels there
FORMS = {"avx2": (AVX2, "vpmaddubsw"), "avxvnni": (AVX2 + ",+avxvnni", "vpdpbusd")}
OUTPUTS, INPUTS = 48, 192
EACH_ROWS = (1, 2, 3, 4, 7, 19, 30)


def told(form: str, folder: Path | None = None) -> dict[str, str]:
    """The environment of a process whose kernels are of this form."""
    if not get_host_cpu_features().get(form):
        pytest.skip("this processor has no such instructions")
    own = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": FORMS[form][0]}
    if folder is not None:
        own["NUMBA_CACHE_DIR"] = str(folder)
    return {**os.environ, **own}


def products() -> dict[str, str]:
    """Digests of products with 4 and 8 bits, without tile registers, by numbers of rows."""
    found, draw = {}, torch.Generator().manual_seed(0)
    levels = torch.randint(16, (OUTPUTS, INPUTS), dtype=torch.uint8, generator=draw)
    steps = (torch.rand(INPUTS // GROUP, OUTPUTS, 2, generator=draw) - 0.5).bfloat16()
    layer = QuantizedLinear(nn.Linear(INPUTS, OUTPUTS, bias=False), 8)
    layer.weight = nn.Parameter(torch.randn(OUTPUTS, INPUTS, generator=draw))
    layer.pack()
    given = {
        4: (torch.from_numpy(nibbles.pack(levels, steps)), torch.ones(OUTPUTS)),
        8: (layer.weight, layer.scales),
    }
    team = ThreadTeam(2)
    for rows in EACH_ROWS:
        x = torch.randn(rows, INPUTS, generator=draw)
        for bits, (weights, scales) in given.items():
            result = RowProducts(team)(x, weights, scales)
            found[f"{bits} bits, {rows} rows"] = sha256(result.numpy().tobytes()).hexdigest()
    team.close()
    return found


def machine_code() -> str:
    """Of products with 4 bits, in the processor's words."""
    given = [each[0] for each in Rounded.allocate(1, 1, GROUP)]
    panels = np.zeros((1, nibbles.GROUP_BYTES), np.uint8)
    nibbles.multiply_panels(panels, 1, 0, 16, *given, np.zeros((1, 16), np.float32), 0)
    (signature,) = nibbles.multiply_panels.signatures
    code: str = nibbles.multiply_panels.inspect_asm(signature)
    return code


def report() -> None:
    """What another process is asked for."""
    with patch.object(amx, "permitted", lambda: False):
        print(json.dumps({"code": machine_code(), "products": products()}))


@pytest.fixture(scope="module", params=list(FORMS))
def form(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Any]:
    """A form's name, and what a process has reported whose kernels are of that form."""
    environment = told(request.param, tmp_path_factory.mktemp("kernels"))
    code = f"from {__name__} import report; report()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, check=True, capture_output=True
    )
    return request.param, json.loads(done.stdout)


def test_all_instructions_give_the_same_bits(
    form: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amx, "permitted", lambda: False)
    assert integers.AVAILABLE
    assert products() == form[1]["products"]


def inner_loops(code: str) -> Iterator[list[str]]:
    """Instructions of the loops that have no other label."""
    labels: dict[str, int] = {}
    lines = code.splitlines()
    for at, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels = {label[1]: at}
        elif (jump := re.match(r"\s+j\w+\s+(\.L\w+)", line)) and jump[1] in labels:
            yield lines[labels[jump[1]] : at]


def test_sums_stay_in_registers(form: tuple[str, Any]) -> None:
    """All sums of integers do, and of those in float32, which a group adds to once, all but two."""
    name, reported = form
    code, dot = reported["code"], FORMS[name][1]
    assert ("zmm" in code, "vpmaddubsw" in code) == (False, name == "avx2")
    loops = [loop for loop in inner_loops(code) if any(dot in line for line in loop)]
    assert len(loops) == 4  # one row, two, four with either half of a panel
    for loop in loops:
        sums = sum("vcvtdq2ps" in line for line in loop)  # each becomes a float once
        assert sums in (2, 4)
        assert sum(dot in line for line in loop) == sums * GROUP // 4
        assert sum("vcvt" in line for line in loop) == sums
        assert sum(bool(re.search(r"%ymm\d+, -?\d*\(%rsp\)", line)) for line in loop) <= 2


def test_all_tests_of_4_bits_hold_with_avx2_alone() -> None:
    files = [
        str(Path(__file__).with_name(f"test_cpu_{name}.py")) for name in ("kernels", "prompts")
    ]
    chosen = "-v", "-n", "0", "-p", "no:cacheprovider", "-k", "4bit or 4_bits"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen, *files],
        env=told("avx2"), cwd=ROOT, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= 20, done.stdout
