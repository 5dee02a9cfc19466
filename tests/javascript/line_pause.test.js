import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CUT, cutAt, pauseOf, withPause } from '../../studio/ui/static/script/line_pause.js';

test('the pause of a field is the tag at the end of the text', () => {
  for (const text of ['Come in.', '[glad] Come in. [/glad]', 'Sit [pause 1s] down.', '']) {
    assert.equal(pauseOf(text), '');
    for (const seconds of [0, 0.3, 2]) {
      const put = withPause(text, seconds);
      assert.equal(pauseOf(put), seconds);
      assert.equal(pauseOf(withPause(put, 1)), 1);
      assert.equal(withPause(put, ''), text);
    }
  }
  assert.equal(pauseOf('Come. [pause 300 ms]'), 0.3);
  assert.equal(pauseOf('Come. [break: 1,5]'), 1.5);
  assert.equal(pauseOf('Come. [pause]'), 0.7);
});

test('a line is cut where something stands on both sides', () => {
  assert.equal(cutAt('Come in. Sit down.', 8), `Come in. [pause ${CUT}s] Sit down.`);
  for (const at of [0, 18]) assert.equal(cutAt('Come in. Sit down.', at), null);
  assert.equal(cutAt('Come in. [pause 1s]', 8), null);
});
