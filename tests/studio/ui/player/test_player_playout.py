"""What the worklet plays, in a time of its own: no sound card, no clock, thousands of schedules."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.ui.player.player import FOLDER

FADE = 60
BLOCK = 128
RATE = 24_000

# Plays chunks of `level` (or of 1, 2, 3 …) that arrive at their moments; orders are calls by block.
SIMULATE = """
({ chunks, level, orders, told = 0, playout = new Playout() }) => {
  const sound = new Float32Array(128 * 2000);
  const total = chunks.reduce((sum, [, size]) => sum + size, 0);
  const source = Int16Array.from({ length: total }, (_, i) => level || (i % 30000) + 1);
  let next = 0, sent = 0, block = 0, quiet = 0;
  playout.begin();
  for (; quiet < 3 && block < 2000; block++) {
    const now = (block * 128) / 24000;
    for (; next < chunks.length && chunks[next][0] <= now; next++) {
      playout.push(source.slice(sent, sent + chunks[next][1]), now);
      sent += chunks[next][1];
    }
    if (next === chunks.length && now >= chunks[next - 1][0] + told) playout.finish(total);
    orders.filter(([when]) => when === block).forEach(([, what]) => playout[what]());
    playout.render(sound.subarray(block * 128, (block + 1) * 128));
    quiet = playout.state === 'ended' && playout.total !== null ? quiet + 1 : 0;
  }
  const { underruns, prebuffer, played, state } = playout;
  let bytes = '';
  const raw = new Uint8Array(sound.buffer, 0, block * 512);
  raw.forEach((byte) => (bytes += String.fromCharCode(byte)));
  return { sound: btoa(bytes), underruns, prebuffer, played, state, total };
}
"""

# A source at real time over a network that delays each chunk: gaps, and those after enough growth.
JITTER = """
(delays) => delays.map((row) => {
  const playout = new Playout();
  let arrival = 0, late = 0, grown = 0, sent = 0;
  const out = new Float32Array(128);
  for (let block = 0; block * 128 < (row.length + 12) * 3840; block++) {
    const now = (block * 128) / 24000;
    for (; sent < row.length; sent++) {
      arrival = Math.max(arrival, 0.16 * (sent + 1) + row[sent]);
      if (arrival > now) break;
      if (playout.starved && playout.prebuffer >= 0.4 + 0.16) grown += 1;
      playout.push(new Int16Array(3840).fill(1), now);
    }
    if (sent === row.length) playout.finish(sent * 3840);
    playout.render(out);
  }
  return { underruns: playout.underruns, grown, played: playout.played, all: row.length * 3840 };
})
"""

gaps = st.lists(st.tuples(st.floats(0, 0.5), st.integers(4 * FADE, 6000)), min_size=1, max_size=8)
moments = gaps.map(
    lambda gaps: [[sum(g for g, _ in gaps[: i + 1]), n] for i, (_, n) in enumerate(gaps)]
)
quick = settings(max_examples=20, deadline=None)


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    for name in ("playout.js", "stretch.js", "resample.js"):
        page.add_script_tag(content=Path(FOLDER, name).read_text(encoding="utf-8"))
    yield page
    page.close()


def simulate(page: Any, chunks: list[list[float]], **given: Any) -> dict[str, Any]:
    done = page.evaluate(SIMULATE, {"chunks": chunks, "level": 0, "orders": [], **given})
    done["sound"] = np.frombuffer(base64.b64decode(done["sound"]), np.float32) * 32768
    return dict(done)


def steps(sound: np.ndarray, level: int) -> float:
    """The largest jump, next to the level, between the natural start and the natural end."""
    loud = np.flatnonzero(sound)
    inner = sound[loud[0] : loud[-1] + 1]
    return float(np.abs(np.diff(inner)).max() / level) if len(inner) > 1 else 0.0


@quick
@given(chunks=moments)
def test_every_sample_is_played_once_and_in_order(page: Any, chunks: list[list[float]]) -> None:
    done = simulate(page, chunks)
    assert done["played"] == done["total"]
    assert done["state"] == "ended"
    heard = done["sound"][done["sound"] > 0]
    whole = np.arange(done["total"]) % 30000 + 1
    assert len(heard) == len(whole)
    faded = int((np.round(heard) != whole).sum())
    assert faded <= 2 * FADE * (done["underruns"] + 1)
    if not done["underruns"]:
        assert done["sound"].max() == whole.max()


@quick
@given(chunks=moments, told=st.floats(0, 1))
def test_every_gap_is_counted(page: Any, chunks: list[list[float]], told: float) -> None:
    done = simulate(page, chunks, told=told)
    assert done["played"] == done["total"]
    loud = np.flatnonzero(done["sound"])
    assert int((np.diff(loud) > 1).sum()) == done["underruns"]


@quick
@given(chunks=moments, pauses=st.lists(st.integers(1, 200), max_size=3))
def test_no_gap_or_pause_clicks(page: Any, chunks: list[list[float]], pauses: list[int]) -> None:
    orders = [[block, "pause"] for block in pauses] + [[block + 9, "resume"] for block in pauses]
    done = simulate(page, chunks, level=10_000, orders=orders)
    assert done["played"] == done["total"]
    assert steps(done["sound"], 10_000) <= 1.05 / FADE


@pytest.mark.parametrize("left", [0, 1, FADE - 1, FADE, FADE + 1])
def test_a_pause_at_the_very_end_does_not_click(page: Any, left: int) -> None:
    orders = [[2, "pause"], [9, "resume"]]
    done = simulate(page, [[0, 2 * BLOCK + left]], level=10_000, orders=orders)
    assert done["played"] == done["total"]
    assert steps(done["sound"], 10_000) <= 1.05 / FADE


@quick
@given(block=st.integers(1, 120))
def test_stop_fades_within_three_milliseconds(page: Any, block: int) -> None:
    done = simulate(page, [[0, 20_000]], level=10_000, orders=[[block, "stop"]])
    assert np.count_nonzero(done["sound"]) == block * BLOCK + FADE
    assert steps(done["sound"], 10_000) <= 1.05 / FADE


def test_a_take_that_is_held_waits_for_its_lead(page: Any) -> None:
    states = page.evaluate("""() => {
      const playout = new Playout(), out = new Float32Array(128), states = [];
      playout.begin();
      playout.hold = 1;
      for (const now of [0, 0.1]) {
        playout.push(new Int16Array(12_000).fill(1000), now);
        playout.render(out);
        states.push(playout.state);
      }
      playout.begin();
      return [...states, playout.hold];
    }""")
    assert states == ["filling", "playing", 0]


def test_a_calm_network_starts_with_the_first_chunk(page: Any) -> None:
    chunks = [[0.1 + 0.07 * index, 1920] for index in range(30)]
    done = simulate(page, chunks)
    first = int(np.flatnonzero(done["sound"])[0]) / RATE
    assert 0.1 <= first <= 0.1 + 2 * BLOCK / RATE
    assert done["underruns"] == 0
    assert done["prebuffer"] == 0


def test_delays_of_400_ms_are_smooth_after_growing(page: Any) -> None:
    delays = np.random.default_rng(0).uniform(0, 0.4, (300, 50)).tolist()
    done = page.evaluate(JITTER, delays)
    assert all(each["played"] == each["all"] for each in done)
    assert all(each["grown"] == 0 for each in done)
    assert max(each["underruns"] for each in done) <= 3
    assert np.mean([each["underruns"] for each in done]) < 1.8


def test_calm_takes_forget_the_prebuffer(page: Any) -> None:
    prebuffers = page.evaluate(
        """() => {
          const playout = new Playout();
          playout.prebuffer = 0.3;
          return [1, 2, 3, 4, 5, 6].map(() => {
            playout.push(new Int16Array(1920), 0);
            playout.begin();
            return playout.prebuffer;
          });
        }"""
    )
    assert prebuffers == sorted(prebuffers, reverse=True)
    assert prebuffers[-1] == 0


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("pitch", [200, 1_000, 5_000])
def test_another_rate_of_the_device_keeps_the_sound(page: Any, rate: int, pitch: int) -> None:
    heard = page.evaluate(
        """([rate, pitch]) => {
          const resampler = new Resampler(24000, rate);
          let at = 0;
          const read = (block) => {
            for (let i = 0; i < block.length; i++) {
              block[i] = Math.sin((2 * Math.PI * pitch * at++) / 24000);
            }
          };
          const sound = [];
          for (let block = 0; block < 200; block++) {
            const out = new Float32Array(128);
            resampler.render(read, out);
            sound.push(...out);
          }
          return sound;
        }""",
        [rate, pitch],
    )
    sound = np.array(heard)[200:]
    time = np.arange(len(sound)) / rate
    basis = np.stack([np.sin(2 * math.pi * pitch * time), np.cos(2 * math.pi * pitch * time)], 1)
    fit, *_ = np.linalg.lstsq(basis, sound, rcond=None)
    noise = sound - basis @ fit
    assert abs(np.hypot(*fit) - 1) < 0.01
    assert 10 * math.log10(0.5 / np.mean(noise**2)) > 55


@quick
@given(chunks=st.lists(st.integers(1, 5000), min_size=1, max_size=8), data=st.data())
def test_from_any_position_the_rest_is_played(
    page: Any, chunks: list[int], data: st.DataObject
) -> None:
    total = sum(chunks)
    to = data.draw(st.integers(-10, total + 10))
    heard = page.evaluate(
        """([chunks, to]) => {
          const playout = new Playout();
          let sent = 0;
          for (const size of chunks) {
            playout.push(Int16Array.from({ length: size }, (_, i) => sent + i + 1), 0);
            sent += size;
          }
          playout.finish(sent);
          const out = new Float32Array(128);
          while (playout.state !== 'ended') playout.render(out);
          playout.seek(to);
          const sound = [];
          while (playout.state !== 'ended') {
            playout.render(out);
            sound.push(...out);
          }
          return { sound, played: playout.played };
        }""",
        [chunks, to],
    )
    sound, start = np.array(heard["sound"]) * 32768, min(max(to, 0), total)
    rest = np.arange(start, total) + 1
    assert heard["played"] == total
    assert np.allclose(sound[FADE : len(rest)], rest[FADE:])  # after its fade-in
    assert not sound[len(rest) :].any()


@pytest.mark.parametrize("rate", [0.5, 0.75, 1, 1.25, 1.5, 2])
@pytest.mark.parametrize("pitch", [110, 220, 700])
def test_another_speed_keeps_the_pitch(page: Any, rate: float, pitch: int) -> None:
    """A tone is read `rate` times as fast as it is heard, and stays a tone of its pitch."""
    done = page.evaluate(
        """([rate, pitch]) => {
          let at = 0;
          const stretch = new Stretch((block) => {
            for (let i = 0; i < block.length; i++) {
              block[i] = Math.sin((2 * Math.PI * pitch * at++) / 24000);
            }
          });
          stretch.rate = rate;
          const sound = [];
          for (let block = 0; block < 400; block++) {
            const out = new Float32Array(128);
            stretch.render(out);
            sound.push(...out);
          }
          return { sound, read: at };
        }""",
        [rate, pitch],
    )
    sound = np.array(done["sound"])
    assert abs(done["read"] / len(sound) - rate) < 0.06
    turns = 2 * math.pi * pitch * np.arange(2000) / RATE
    basis = np.stack([np.sin(turns), np.cos(turns)], 1)
    for start in range(2000, len(sound) - 2000, 4000):
        piece = sound[start : start + 2000]
        fit, *_ = np.linalg.lstsq(basis, piece, rcond=None)
        assert np.abs(piece - basis @ fit).max() < (1e-6 if rate == 1 else 0.1)


def test_back_at_full_speed_the_samples_pass_as_they_are(page: Any) -> None:
    active = page.evaluate(
        """() => {
          const stretch = new Stretch((block) => block.fill(0));
          const out = new Float32Array(128);
          stretch.rate = 1.5;
          stretch.render(out);
          const before = stretch.active;
          stretch.rate = 1;
          for (let block = 0; block < 40; block++) stretch.render(out);
          return [before, stretch.active];
        }"""
    )
    assert active == [True, False]
