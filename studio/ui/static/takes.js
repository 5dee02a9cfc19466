// Takes as rows and cards: plays one in the page's player, tells Gradio what was pressed, and keeps
// which rows are selected while the list is drawn again. Called by each list and card (studio/ui/take_card.py).

import { copy } from './addresses.js';
import { whenGone } from './lifetime.js';
import { hear } from './player/player.js';
import { keepRows } from './rows.js';

const SHOWN = 2000; // ms
const PAGE = '{page}'; // in texts that are copied: this page's address

async function copied(button) {
  await copy(button.dataset.text.replace(PAGE, location.origin + location.pathname.replace(/\/$/, '')));
  button.classList.add('copied');
  setTimeout(() => button.classList.remove('copied'), SHOWN);
}

// The time of today's takes, the date of older ones, where the browser is: the server may be elsewhere.
export function whenOf(moment, now = new Date()) {
  const two = (number) => String(number).padStart(2, '0');
  const time = `${two(moment.getHours())}:${two(moment.getMinutes())}`;
  if (moment.toDateString() === now.toDateString()) return time;
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ${time}`;
}

export function mount({ element: root, trigger }) {
  const chosen = new Set(); // ids of takes
  const boxes = () => [...root.querySelectorAll('li input[type=checkbox]')];
  const id = (box) => box.closest('li').querySelector('[data-take]').dataset.take;

  function show() {
    for (const each of root.querySelectorAll('time')) {
      const words = whenOf(new Date(each.dateTime));
      if (each.textContent !== words) each.textContent = words; // what it changes, it is told of
    }
    const all = boxes();
    if (!all.length) return;
    const here = new Set(all.map(id));
    for (const each of chosen) if (!here.has(each)) chosen.delete(each);
    for (const box of all) box.checked = chosen.has(id(box));
    const [bar, some] = [root.querySelector('.timbre-chosen'), chosen.size > 0];
    const every = bar.querySelector('.every');
    every.checked = chosen.size === here.size;
    every.indeterminate = some && !every.checked;
    bar.querySelector('output').value = chosen.size;
    for (const button of bar.querySelectorAll('button')) button.disabled = !some;
    const pack = bar.querySelector('.pack');
    const much = Boolean(pack) && isTooMuch(pack.dataset, all.filter(({ checked }) => checked));
    pack?.setAttribute('aria-disabled', String(!some || much));
    bar.querySelector('small').hidden = !much;
    if (pack && some && !much) pack.href = `timbre/takes.zip?${[...chosen].map((each) => `id=${each}`).join('&')}`;
    else pack?.removeAttribute('href');
  }

  // What one file may hold is told before it is asked for: a browser shows no reason of the server's.
  function isTooMuch({ most, samples }, picked) {
    const lengths = picked.map((box) => Number(box.closest('li').querySelector('[data-samples]')?.dataset.samples ?? 0));
    return picked.length > Number(most) || lengths.reduce((sum, each) => sum + each, 0) > Number(samples);
  }

  root.addEventListener('change', ({ target }) => {
    if (target.type !== 'checkbox') return;
    const changed = target.classList.contains('every') ? boxes() : [target];
    for (const box of changed) chosen[target.checked ? 'add' : 'delete'](id(box));
    show();
  });

  root.addEventListener('click', ({ target }) => {
    const pressed = target.closest('button[data-do]');
    if (!pressed) return;
    const press = { do: pressed.dataset.do, take: pressed.dataset.take ?? '' };
    if (press.do === 'hear') hear(pressed.dataset);
    else if (press.do === 'copy') copied(pressed);
    else if (press.do === 'hello') trigger('hello', {});
    else if (press.do === 'again' || press.do === 'same') trigger('again', press);
    else if (press.do === 'all') trigger('all', { do: pressed.dataset.all, takes: [...chosen] });
    else trigger('act', press);
  });

  keepRows(root);
  const redrawn = new MutationObserver(show);
  redrawn.observe(root, { childList: true, subtree: true });
  whenGone(root, () => redrawn.disconnect());
  show();
}
