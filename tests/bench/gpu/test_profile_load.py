"""Profiles of a load: their structure, and exact figures for synthetic kernels."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from bench.gpu.kernel_trace import CODEC, GLUE, PREDICTOR, PROMPTS, TALKER, Kernel, by_step_part
from bench.gpu.profile_host import KINDS, OWN, REST, Clock, Turn, kind_times, part_times
from bench.gpu.profile_load import (
    LINES,
    Call,
    call_figures,
    device_figures,
    launch_wait,
    lines,
    main,
    shares,
    table,
    trace_figures,
    trace_lines,
)
from engine.plan import CodecDecode, Prefill, StepPlan
from engine.worker import kernels

STEP, ASIDE = 7, 9  # streams
KERNELS = Path(kernels.__file__).parent


def kernel(name: str, begun: int, ended: int, launch: int = 0, stream: int = STEP) -> Kernel:
    return Kernel(name, stream, begun, ended - begun, launch)


def test_who_has_the_device() -> None:
    found = [
        kernel("predict", 100, 140),
        kernel("convolve", 120, 160, stream=ASIDE),
        kernel("predict", 180, 190),
        kernel("predict", 190, 200),
    ]
    seconds = {"nothing": 0.2, "step alone": 0.4, "codec alone": 0.2, "both": 0.2}
    assert shares(found) == seconds


def test_the_host_is_late_for_what_it_has_not_launched() -> None:
    found = [
        kernel("predict", 100, 200, launch=1),
        kernel("talk_product", 260, 300, launch=2),  # launched too late
        kernel("talk_product", 310, 400, launch=2),  # of a recording: the device took its time
        kernel("predict", 450, 500, launch=3),  # launched long before
    ]
    calls = {1: Call("a", 1, 0, 90), 2: Call("b", 2, 230, 20), 3: Call("c", 3, 290, 20)}
    assert launch_wait(found, calls) == pytest.approx(50 / 400)
    assert launch_wait(found, {}) is None


def test_prompts_are_told_from_frames_by_their_launch() -> None:
    names = ("talk_add_norm", "gemm", "store_keys", "attend_prompt", "talk_add_norm", "pick")
    prompt = [kernel(name, at, at + 1, 5) for at, name in enumerate(names)]
    others = ("predict", "pick", "talk_add_norm", "gemm", "talk_add_norm")
    frame = [kernel(name, at, at + 1, 6) for at, name in enumerate(others, 10)]
    parts = [part for part, _ in by_step_part([*prompt, *frame])]
    assert parts[:6] == ["prompts"] * 5 + ["rest"]
    assert parts[6:] == ["predictor", "rest", "talker", "talker", "talker"]


def test_every_kernel_that_is_told_by_name_exists() -> None:
    sources = [path.read_text() for path in KERNELS.rglob("*") if path.suffix in (".cu", ".py")]
    known = {name for text in sources for name in re.findall(r"(?:def|\)|void)\s+(\w+)\(", text)}
    assert {*PREDICTOR, *TALKER, *GLUE, *PROMPTS, *CODEC} <= known


def test_a_trace_of_a_device_in_lines() -> None:
    found = [kernel("predict", 0, 2_000_000, 1), kernel("Memcpy DtoH", 2_000_000, 2_500_000, 2)]
    made = [Call("cudaGraphLaunch", 1, 0, 1000), Call("cudaLaunchKernel", 3, 2000, 500)]
    figures = call_figures(made, 2) | device_figures(found, made, 2)
    assert (figures["graphs"], figures["outside"], figures["host_late"]) == (0.5, 0.5, 0)
    assert (figures["ms"]["predictor"], figures["ms"]["copies"]) == (1, 0.25)
    assert [call["name"] for call in figures["calls"]] == ["cudaGraphLaunch", "cudaLaunchKernel"]
    shown = dict(trace_lines(figures | {"turn_ms": 7.0}))
    assert shown["turn under trace"].strip() == "7.00"
    assert shown["  nothing runs"].endswith("(host late 0.0%)")
    assert len(shown) + len(OWN) + len(KINDS) + 5 <= LINES + 1  # a replay has a part that it is in


def test_parts_are_the_whole_of_a_turn() -> None:
    clock = Clock()
    inner = clock.part("frames", lambda: time.sleep(0.002), None)
    outer = clock.part("launch", inner, None)
    outer()  # outside a turn nothing is booked
    clock.turn(lambda: not outer())()
    (turn,) = clock.turns
    assert sum(turn.parts.values()) == pytest.approx(turn.ended - turn.begun)
    assert turn.parts["frames"] >= 0.002
    assert dict(turn.calls) == {"launch": 1, "frames": 1}
    times = dict(part_times([turn], [turn]))
    assert list(times) == ["launch", "frames", REST]
    assert sum(part["share"] for part in times.values()) == pytest.approx(1, abs=1e-3)


def test_turns_are_told_by_what_is_in_them() -> None:
    prompt, chunk = (Prefill(0, 0, 9),), (CodecDecode(0, 0, 1),)
    plans = [
        StepPlan(0, prefill=prompt),
        StepPlan(1, codec_decode=chunk, decode=(1, 2)),
        StepPlan(2),
    ]
    plans.append(StepPlan(3, prefill=prompt, codec_decode=chunk))
    times = dict(kind_times([Turn(0, 1, plan=plan) for plan in plans]))
    assert [times[kind]["turns"] for kind in KINDS] == [1, 1, 1, 1]
    assert times["codec"]["rows"] == 2


def test_a_trace_that_fails_is_told() -> None:
    figures = trace_figures(None, 0)  # type: ignore[arg-type]
    assert "AttributeError" in figures["error"]


@pytest.mark.slow
def test_loads_of_a_small_model(
    golden_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new"
    spans = {"seconds": 0.5, "trace": 0.2, "warm": 0.2, "frames": (3, 6)}
    model = str(golden_dir / "custom_voice-1b7")
    main(model, [2], [3], device="cpu", change=["max_num_seqs=4"], out=out, **spans)  # type: ignore[arg-type]
    report = json.loads((out / "loads.json").read_text())["loads"]
    assert [found["load"] for found in report] == ["closed 2", "burst 3"]
    for found in report:
        host, trace = found["host"], found["trace"]
        assert found["failed"] == 0
        assert 0 < host["work"]["rows"]["mean"] <= 4  # turns with prompts or codec work have none
        assert sum(kind["turns"] for kind in host["kinds"].values()) == host["turns"] > 0
        assert {"plan", "frames", "wait for device", "commit"} <= host["parts"].keys() <= {*OWN}
        shares = [part["share"] for part in host["parts"].values()]
        assert sum(shares) == pytest.approx(1, abs=0.01)
        assert trace["turns"] > 0
        assert any(call["name"].startswith("aten::") for call in trace["calls"])
    shown = capsys.readouterr().out.splitlines()
    assert shown == table(report).splitlines()
    assert len(shown) <= LINES
    report[0] |= {"failed": 1, "first_error": "Busy", "trace": {"error": "no tracer"}}
    host = dict(lines(report[0]))
    assert (host["failed"], host["turn under trace"]) == ("1: Busy", "no tracer")
