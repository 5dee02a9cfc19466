import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inMood, moodOf } from '../../studio/ui/static/script/line_mood.js';

const KNOWN = ['lower', 'very (odd)', 'Glad'];

test('what a line is put in is what its text says', () => {
  for (const text of ['Come in.', 'Come in. [pause 1s]', '[whispers] Come in.', 'Sit. [glad] Down. [/glad]', '']) {
    for (const mood of KNOWN) {
      for (const strength of [0, 0.5, 1, 1.5]) {
        const put = inMood(text, mood, strength, KNOWN);
        const { mood: found, strength: dose } = moodOf(put, KNOWN);
        assert.deepEqual([found, dose], [mood, strength]);
        assert.equal(inMood(put, '', 1, KNOWN), text);
        assert.equal(inMood(put, 'lower', 1, KNOWN), inMood(text, 'lower', 1, KNOWN));
      }
    }
  }
});

test('a pause stays at the end, where the server reads it', () => {
  assert.equal(inMood('Come in. [pause 1s]', 'lower', 0.6, KNOWN), '[lower 0.6] Come in. [/lower] [pause 1s]');
});

test('brackets that are no mood are text', () => {
  for (const text of ['[1] Come in.', '[sad] Come in. [/sad]', 'Come in [lower].']) {
    assert.equal(moodOf(text, KNOWN).mood, '');
    assert.equal(inMood(text, '', 1, KNOWN), text);
  }
});
