// Of several recorders of a page, the meter beside the one that was pressed is shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beside } from '../../studio/ui/static/level_meter.js';

// A part of a page: its children, and what it holds.
function part(...children) {
  const made = { parentElement: null, contains: (other) => other === made || children.some((child) => child.contains(other)) };
  for (const child of children) child.parentElement = made;
  return made;
}

test('the meter of the recorder that was pressed is shown, and no other', () => {
  const [outer, inner] = [{ root: part() }, { root: part() }];
  const [cloning, reading, elsewhere] = [part(), part(), part()];
  const own = part(reading, inner.root);
  const tab = part(part(cloning, outer.root), own);
  part(tab, elsewhere);
  assert.deepEqual(beside(cloning, [outer, inner]), [outer]);
  assert.deepEqual(beside(reading, [outer, inner]), [inner]);
  assert.deepEqual(beside(elsewhere, [outer, inner]), [outer, inner]);
  assert.deepEqual(beside(null, [outer, inner]), [outer, inner]);
  assert.deepEqual(beside(reading, [outer]), [outer]); // its own is hidden
});
