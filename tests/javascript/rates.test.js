// Another rate of the device, another speed of playback: a tone stays the tone that it was.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Resampler } from '../../studio/ui/static/player/resample.js';
import { Stretch } from '../../studio/ui/static/player/stretch.js';

const RATE = 24_000;

// A source of a tone, and how many samples were read of it.
function tone(pitch) {
  const source = {
    at: 0,
    read: (block) => {
      for (let i = 0; i < block.length; i++) {
        block[i] = Math.sin((2 * Math.PI * pitch * source.at++) / RATE);
      }
    },
  };
  return source;
}

function rendered(blocks, render) {
  const sound = new Float32Array(blocks * 128);
  for (let at = 0; at < sound.length; at += 128) render(sound.subarray(at, at + 128));
  return sound;
}

// The tone of this pitch that fits best (least squares): its amplitude, and what is left of the sound.
function fitted(sound, pitch, rate) {
  const turn = (2 * Math.PI * pitch) / rate;
  let [ss, cc, sc, sy, cy] = [0, 0, 0, 0, 0];
  sound.forEach((y, i) => {
    const [s, c] = [Math.sin(turn * i), Math.cos(turn * i)];
    [ss, cc, sc, sy, cy] = [ss + s * s, cc + c * c, sc + s * c, sy + s * y, cy + c * y];
  });
  const area = ss * cc - sc * sc;
  const [a, b] = [(sy * cc - cy * sc) / area, (cy * ss - sy * sc) / area];
  const rest = sound.map((y, i) => y - a * Math.sin(turn * i) - b * Math.cos(turn * i));
  return { amplitude: Math.hypot(a, b), rest };
}

for (const rate of [16_000, 44_100, 48_000, 96_000]) {
  for (const pitch of [200, 1_000, 5_000]) {
    test(`a device at ${rate} Hz plays ${pitch} Hz as it is`, () => {
      const [resampler, { read }] = [new Resampler(RATE, rate), tone(pitch)];
      const sound = rendered(200, (out) => resampler.render(read, out)).slice(200);
      const { amplitude, rest } = fitted(sound, pitch, rate);
      assert.ok(Math.abs(amplitude - 1) < 0.01);
      const noise = rest.reduce((sum, each) => sum + each * each, 0) / rest.length;
      assert.ok(10 * Math.log10(0.5 / noise) > 55);
    });
  }
}

for (const rate of [0.5, 0.75, 1, 1.25, 1.5, 2]) {
  for (const pitch of [110, 220, 700]) {
    test(`at ${rate} times the speed ${pitch} Hz stay ${pitch} Hz`, () => {
      const source = tone(pitch);
      const stretch = new Stretch(source.read);
      stretch.rate = rate;
      const sound = rendered(400, (out) => stretch.render(out));
      assert.ok(Math.abs(source.at / sound.length - rate) < 0.06);
      for (let start = 2000; start < sound.length - 2000; start += 4000) {
        const { rest } = fitted(sound.slice(start, start + 2000), pitch, RATE);
        const most = rest.reduce((peak, each) => Math.max(peak, Math.abs(each)), 0);
        assert.ok(most < (rate === 1 ? 1e-6 : 0.1), `${most}`);
      }
    });
  }
}

test('back at full speed the samples pass as they are', () => {
  const stretch = new Stretch((block) => block.fill(0));
  const out = new Float32Array(128);
  stretch.rate = 1.5;
  stretch.render(out);
  assert.ok(stretch.active);
  stretch.rate = 1;
  for (let block = 0; block < 40; block++) stretch.render(out);
  assert.ok(!stretch.active);
});
