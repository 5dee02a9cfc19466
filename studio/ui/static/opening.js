// Nothing is shown until the first tab is laid out, so that nothing jumps about while it is. early.js
// hides the page before this module is there.

import { drafts } from './drafts.js';
import { players } from './player/player.js';
import { addStyle } from './style.js';

const PATIENCE = 4000; // ms, then it is shown as it is
const CALM = 3; // frames
// Styles of components in hidden tabs: those that came with the component would move what is shown.
const LATER = ['./pad/pad.css', './map/map.css', './script/script.css'];
const root = document.documentElement;
let [still, height] = [0, ''];
const find = (selector) => document.querySelector(selector);

function isLaidOut() {
  if (!find('.timbre-head')) return Boolean(find('gradio-app .block')); // a page of another kind
  const drafted = drafts.has('timbre-draft-speak'); // typed text is not overwritten
  return Boolean(drafted && players.length && find('.timbre-fields')?.offsetHeight > 100 && find('.timbre-voice')?.textContent.trim());
}

// Frames for which nothing has changed its height.
function stillFor() {
  const now = [root.scrollHeight, find('.timbre-fields')?.offsetHeight].join();
  still = now === height ? still + 1 : 0;
  height = now;
  return still;
}

function look(since) {
  const ready = isLaidOut() && stillFor() >= CALM;
  if (!ready && performance.now() - since < PATIENCE) return requestAnimationFrame(() => look(since));
  for (const sheet of LATER) addStyle(new URL(sheet, import.meta.url));
  requestAnimationFrame(() => {
    root.classList.remove('timbre-opening');
    const field = find('#speak-text textarea');
    if (field?.checkVisibility() && document.activeElement === document.body) field.focus({ preventScroll: true });
    performance.mark('timbre-ready'); // for bench/page_opening.py
  });
}

look(performance.now());
