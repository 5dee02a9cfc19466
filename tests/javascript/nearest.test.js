import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formula, nearest, sharesAt, spread, told } from '../../studio/ui/static/map/nearest.js';
import { random } from './random.js';

function scattered(draw, count) {
  return Array.from({ length: count }, (_, i) => ({ name: `V${i}`, written: `v${i}`, x: draw.real(-9, 9), y: draw.real(-9, 9) }));
}

test('shares are those of the nearest, sum to one, and grow with nearness', () => {
  for (let seed = 0; seed < 200; seed++) {
    const draw = random(seed);
    const spots = scattered(draw, draw.whole(1, 40));
    const at = { x: draw.real(-9, 9), y: draw.real(-9, 9) };
    const shares = sharesAt(at, spots);
    assert.ok(shares.length >= 1 && shares.length <= 4);
    assert.ok(Math.abs(shares.reduce((sum, [, share]) => sum + share, 0) - 1) < 1e-9);
    assert.equal(shares[0][0], nearest(at, spots)[0]);
    const far = ([place]) => Math.hypot(spots[place].x - at.x, spots[place].y - at.y);
    const left = spots.map((_, place) => place).filter((place) => !shares.some(([own]) => own === place));
    for (let i = 1; i < shares.length; i++) assert.ok(shares[i - 1][1] >= shares[i][1]);
    if (shares.length === 4) for (const place of left) assert.ok(far([place]) >= far(shares[3]));
  }
});

test('on a voice, and near enough to it, that voice is alone', () => {
  const spots = scattered(random(1), 12);
  spots.forEach((spot, place) => {
    assert.deepEqual(sharesAt(spot, spots), [[place, 1]]);
    assert.deepEqual(sharesAt({ x: spot.x + 0.001, y: spot.y }, spots, 0.002), [[place, 1]]);
  });
});

test('two voices in one place, one voice, and none', () => {
  const one = { name: 'A', written: 'a', x: 1, y: 1 };
  assert.equal(sharesAt({ x: 1, y: 1 }, [one, { ...one }]).length, 1);
  assert.deepEqual(sharesAt({ x: 5, y: 5 }, [one]), [[0, 1]]);
  assert.deepEqual(sharesAt({ x: 5, y: 5 }, []), []);
});

test('a formula has whole shares of a hundred, and the moods that are pulled', () => {
  const spots = scattered(random(2), 20);
  const shares = sharesAt({ x: 0.3, y: -0.2 }, spots);
  const written = formula(shares, spots, [['lower', 0.5], ['glad', 0]]);
  const parts = [...written.matchAll(/v\d+\((\d+)\)/g)].map(([, share]) => Number(share));
  assert.equal(parts.reduce((sum, each) => sum + each, 0), 100);
  assert.match(written, /\+lower\(0\.5\)$/);
  assert.match(told(shares, spots, [['lower', 0.5]]), /V\d+ \d+ %.*, lower 0\.5$/);
});

test('arrows stand apart, in the order of their directions, and stay where they have room', () => {
  for (let seed = 0; seed < 100; seed++) {
    const draw = random(seed);
    const turns = Array.from({ length: draw.whole(0, 14) }, () => draw.real(-3.14, 3.14));
    const found = spread(turns);
    const sorted = [...found].sort((a, b) => a - b);
    const gap = Math.min(0.45, (0.95 * 2 * Math.PI) / turns.length);
    for (let i = 1; i < sorted.length; i++) assert.ok(sorted[i] - sorted[i - 1] >= 0.9 * gap);
    for (const a of turns.keys()) for (const b of turns.keys()) if (turns[a] < turns[b]) assert.ok(found[a] < found[b]);
  }
  assert.deepEqual(spread([0, 1, 2, -2]), [0, 1, 2, -2]);
  assert.equal(new Set(spread([0, 0, 0]).map((turn) => turn.toFixed(3))).size, 3);
});
