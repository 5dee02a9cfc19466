// What the worklet plays, in a time of its own: no sound card, no clock, hundreds of schedules.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Playout } from '../../studio/ui/static/player/playout.js';
import { random, times } from './random.js';

const FADE = 60;
const BLOCK = 128;
const RATE = 24_000;

// Plays chunks of `level` (or of 1, 2, 3 …) that arrive at their moments; orders are calls by block.
function simulate(chunks, { level = 0, orders = [], late = 0 } = {}) {
  const playout = new Playout();
  const sound = new Float32Array(BLOCK * 2000);
  const total = chunks.reduce((sum, [, size]) => sum + size, 0);
  const source = Int16Array.from({ length: total }, (_, i) => level || (i % 30_000) + 1);
  let [next, sent, block, quiet] = [0, 0, 0, 0];
  playout.begin();
  for (; quiet < 3 && block < 2000; block++) {
    const now = (block * BLOCK) / RATE;
    for (; next < chunks.length && chunks[next][0] <= now; next++) {
      playout.push(source.slice(sent, sent + chunks[next][1]), now);
      sent += chunks[next][1];
    }
    if (next === chunks.length && now >= chunks[next - 1][0] + late) playout.finish(total);
    for (const [when, what] of orders) if (when === block) playout[what]();
    playout.render(sound.subarray(block * BLOCK, (block + 1) * BLOCK));
    quiet = playout.state === 'ended' && playout.total !== null ? quiet + 1 : 0;
  }
  return { playout, total, sound: sound.subarray(0, block * BLOCK).map((each) => each * 32768) };
}

function schedule(draw) {
  let now = 0;
  return Array.from({ length: draw.whole(1, 8) }, () => {
    now += draw.real(0, 0.5);
    return [now, draw.whole(4 * FADE, 6000)];
  });
}

const loud = (sound) => [...sound.keys()].filter((at) => sound[at] !== 0);

// The largest jump, next to the level, between the natural start and the natural end.
function largestStep(sound, level) {
  const at = loud(sound);
  let most = 0;
  for (let i = at[0] + 1; i <= at.at(-1); i++) most = Math.max(most, Math.abs(sound[i] - sound[i - 1]));
  return most / level;
}

test('every sample is played once and in order', () =>
  times(40, (draw) => {
    const { playout, total, sound } = simulate(schedule(draw));
    assert.equal(playout.played, total);
    assert.equal(playout.state, 'ended');
    const heard = sound.filter((each) => each > 0);
    assert.equal(heard.length, total);
    const faded = heard.filter((each, i) => Math.round(each) !== (i % 30_000) + 1).length;
    assert.ok(faded <= 2 * FADE * (playout.underruns + 1));
  }));

test('every gap is counted, also if word of the end comes late', () =>
  times(40, (draw) => {
    const { playout, total, sound } = simulate(schedule(draw), { late: draw.real(0, 1) });
    assert.equal(playout.played, total);
    const at = loud(sound);
    assert.equal(at.filter((each, i) => i && each - at[i - 1] > 1).length, playout.underruns);
  }));

test('no gap and no pause clicks', () =>
  times(40, (draw) => {
    const pauses = Array.from({ length: draw.whole(0, 3) }, () => draw.whole(1, 200));
    const orders = pauses.flatMap((block) => [[block, 'pause'], [block + 9, 'resume']]);
    const { playout, total, sound } = simulate(schedule(draw), { level: 10_000, orders });
    assert.equal(playout.played, total);
    assert.ok(largestStep(sound, 10_000) <= 1.05 / FADE);
  }));

test('a pause at the very end does not click', () => {
  for (const left of [0, 1, FADE - 1, FADE, FADE + 1]) {
    const orders = [[2, 'pause'], [9, 'resume']];
    const { playout, total, sound } = simulate([[0, 2 * BLOCK + left]], { level: 10_000, orders });
    assert.equal(playout.played, total);
    assert.ok(largestStep(sound, 10_000) <= 1.05 / FADE, `${left} samples left`);
  }
});

test('stop fades within three milliseconds', () => {
  for (const block of [1, 2, 7, 60, 120]) {
    const { sound } = simulate([[0, 20_000]], { level: 10_000, orders: [[block, 'stop']] });
    assert.equal(loud(sound).length, block * BLOCK + FADE);
    assert.ok(largestStep(sound, 10_000) <= 1.05 / FADE);
  }
});

test('a take that is held waits for its lead', () => {
  const [playout, out, states] = [new Playout(), new Float32Array(BLOCK), []];
  playout.begin();
  playout.hold = 1;
  for (const now of [0, 0.1]) {
    playout.push(new Int16Array(12_000).fill(1000), now);
    playout.render(out);
    states.push(playout.state);
  }
  playout.begin();
  assert.deepEqual([...states, playout.hold], ['filling', 'playing', 0]);
});

test('a calm network starts with the first chunk', () => {
  const chunks = Array.from({ length: 30 }, (_, i) => [0.1 + 0.07 * i, 1920]);
  const { playout, sound } = simulate(chunks);
  const first = loud(sound)[0] / RATE;
  assert.ok(first >= 0.1 && first <= 0.1 + (2 * BLOCK) / RATE);
  assert.deepEqual([playout.underruns, playout.prebuffer], [0, 0]);
});

// A source at real time over a network that delays each chunk: gaps, and those after enough growth.
function jitter(delays) {
  const [playout, out] = [new Playout(), new Float32Array(BLOCK)];
  let [arrival, grown, sent] = [0, 0, 0];
  for (let block = 0; block * BLOCK < (delays.length + 12) * 3840; block++) {
    const now = (block * BLOCK) / RATE;
    for (; sent < delays.length; sent++) {
      arrival = Math.max(arrival, 0.16 * (sent + 1) + delays[sent]);
      if (arrival > now) break;
      if (playout.starved && playout.prebuffer >= 0.4 + 0.16) grown += 1;
      playout.push(new Int16Array(3840).fill(1), now);
    }
    if (sent === delays.length) playout.finish(sent * 3840);
    playout.render(out);
  }
  return { underruns: playout.underruns, grown, whole: playout.played === delays.length * 3840 };
}

test('delays of 400 ms are smooth after growing', () => {
  const draw = random(1);
  const rows = Array.from({ length: 100 }, () =>
    jitter(Array.from({ length: 50 }, () => draw.real(0, 0.4))));
  assert.ok(rows.every(({ whole, grown }) => whole && grown === 0));
  assert.ok(rows.every(({ underruns }) => underruns <= 3));
  assert.ok(rows.reduce((sum, { underruns }) => sum + underruns, 0) / rows.length < 1.8);
});

test('calm takes forget the prebuffer', () => {
  const playout = new Playout();
  playout.prebuffer = 0.3;
  const kept = Array.from({ length: 6 }, () => {
    playout.push(new Int16Array(1920), 0);
    playout.begin();
    return playout.prebuffer;
  });
  assert.deepEqual(kept, [...kept].sort((a, b) => b - a));
  assert.equal(kept.at(-1), 0);
});

test('from any position the rest is played', () =>
  times(40, (draw) => {
    const playout = new Playout();
    const out = new Float32Array(BLOCK);
    let total = 0;
    for (let count = draw.whole(1, 8); count; count--) {
      const size = draw.whole(1, 5000);
      const from = total;
      playout.push(Int16Array.from({ length: size }, (_, i) => from + i + 1), 0);
      total += size;
    }
    playout.finish(total);
    while (playout.state !== 'ended') playout.render(out);
    const to = draw.whole(-10, total + 10);
    playout.seek(to);
    const sound = [];
    while (playout.state !== 'ended') {
      playout.render(out);
      sound.push(...out);
    }
    const start = Math.min(Math.max(to, 0), total);
    assert.equal(playout.played, total);
    for (let i = FADE; i < total - start; i++) {
      assert.equal(Math.round(sound[i] * 32768), start + i + 1); // after its fade-in
    }
    assert.ok(sound.slice(total - start).every((each) => each === 0));
  }));
