// A list whose rows have several controls: Tab reaches those of one row, the arrows go to the same
// control of the next row, and that row is the one that Tab reaches then.

import { whenGone } from './lifetime.js';

const CONTROLS = 'button, input, a[href]';
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

export function keepRows(root, selector = 'li') {
  const rows = () => [...root.querySelectorAll(selector)];
  const controls = (row) => [...row.querySelectorAll(CONTROLS)];
  let reached = 0; // the place of the row

  function reach(place) {
    const all = rows();
    reached = Math.max(0, Math.min(place, all.length - 1));
    for (const [row, each] of all.entries()) {
      for (const control of controls(each)) {
        const index = row === reached ? 0 : -1;
        if (control.tabIndex !== index) control.tabIndex = index;
      }
    }
  }

  root.addEventListener('focusin', ({ target }) => {
    const place = rows().indexOf(target.closest(selector));
    if (place >= 0 && place !== reached) reach(place);
  });
  root.addEventListener('keydown', (event) => {
    const row = STEPS[event.key] && event.target.closest(selector);
    if (!row) return;
    const next = rows()[rows().indexOf(row) + STEPS[event.key]];
    if (!next) return;
    event.preventDefault();
    const place = Math.min(controls(row).indexOf(event.target), controls(next).length - 1);
    controls(next)[place].focus();
  });
  // Gradio changes a list in place.
  const redrawn = new MutationObserver(() => reach(reached));
  redrawn.observe(root, { childList: true, subtree: true, attributeFilter: ['tabindex'] });
  whenGone(root, () => redrawn.disconnect());
  reach(0);
}
