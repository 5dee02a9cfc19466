// The player's labels in each language.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WORDS } from '../../studio/ui/static/player/words.js';

test('all languages have the same labels and gaps', () => {
  const gaps = (text) => [...text.matchAll(/{\w+}/g)].map(([gap]) => gap).sort();
  for (const table of Object.values(WORDS)) {
    assert.deepEqual(Object.keys(table), Object.keys(WORDS.en));
    for (const [key, text] of Object.entries(table)) assert.deepEqual(gaps(text), gaps(WORDS.en[key]));
  }
});
