import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeBox } from '../../studio/ui/static/map/painting.js';
import { random } from './random.js';

const FRAME = { width: 400, height: 300 };
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

test('a label lies inside the frame wherever its point is', () => {
  for (let seed = 0; seed < 300; seed++) {
    const draw = random(seed);
    const point = { x: draw.real(-40, 440), y: draw.real(-40, 340) };
    const wide = draw.real(10, 120);
    const box = freeBox(point, wide, draw.whole(0, 1) === 1, [], FRAME);
    assert.ok(box.left >= 0 && box.right <= FRAME.width && box.top >= 0 && box.bottom <= FRAME.height);
    assert.ok(Math.abs(box.right - box.left - wide) < 1e-9);
  }
});

test('labels of eight arrows at the right edge cover neither one another nor the names there', () => {
  const cross = { x: 372, y: 150 };
  const names = [{ left: 350, right: 398, top: 128, bottom: 144 }, { left: 300, right: 345, top: 160, bottom: 176 }];
  const taken = [...names];
  for (let place = 0; place < 8; place++) {
    const turn = (2 * Math.PI * place) / 8;
    const x = Math.min(FRAME.width - 11, cross.x + 36 * Math.cos(turn));
    const box = freeBox({ x, y: cross.y + 36 * Math.sin(turn) }, 45, x < cross.x, taken, FRAME);
    assert.ok(taken.every((each) => !meet(each, box)), `label ${place}`);
    taken.push(box);
  }
});

test('where nothing is free, the least is covered', () => {
  const all = { left: 0, right: FRAME.width, top: 0, bottom: FRAME.height };
  const busy = { left: 200, right: 400, top: 0, bottom: 300 };
  const box = freeBox({ x: 200, y: 150 }, 50, false, [all, busy], FRAME);
  assert.ok(!meet(box, busy));
});
