// Buttons in HTML of the server: a press becomes an event of their component, with the button's data.

import { Sound } from './player/sound.js';
import { keepRows } from './rows.js';

// named: the event of each data-do; rest: the event of all others; rows: whether the buttons are in a list
export function mount({ element, trigger }, { selector, named, rest, rows = false }) {
  if (rows) keepRows(element);
  element.addEventListener('click', ({ target }) => {
    const pressed = target.closest(selector);
    if (!pressed) return;
    Sound.wake(); // a browser starts its sound inside a press only
    trigger(named[pressed.dataset.do] ?? rest, { ...pressed.dataset });
  });
}
