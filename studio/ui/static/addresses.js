// Where the page is, as the address that stands in the browser: a tab (#script), a script (#script=NUMBER),
// a take (#take=ID), a voice under Speak (#use-voice=KEY). Back and a link go there.

const OUTER = { takes: 'library', voices: 'library', moods: 'library', check: 'library', pad: 'blend', map: 'blend' };
const FIRST = 'speak';
const root = document.documentElement;
let script = ''; // the number of the open script
let choosing = false; // a tab, for an address: what is shown on the way is no place of its own

// What stands behind the first # of an address; keys of voices may hold another.
function read({ hash }) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return ''; // it is no address of ours
  }
}
const here = () => read(location);
const isSelected = (tab) => tab.getAttribute('aria-selected') === 'true' && tab.checkVisibility();
const tabs = (name = '') => [...document.querySelectorAll(`[role=tab][data-tab-id${name && `="${name}"`}]`)];

// The innermost tab that is open, with what it shows.
function place() {
  const named = tabs().filter(({ dataset }) => /^[a-z]/.test(dataset.tabId)); // others have numbers
  const open = named.filter(isSelected).map(({ dataset }) => dataset.tabId);
  const name = open.find((each) => open.includes(OUTER[each])) ?? open[0] ?? FIRST;
  return name === 'script' && script ? `script=${script}` : name;
}

function note(how = 'pushState') {
  if (root.classList.contains('timbre-opening')) return;
  keep(place(), how);
}

function keep(name, how) {
  if (name === (here() || FIRST)) return;
  history[how](null, '', name === FIRST ? location.pathname + location.search : `#${name}`);
}

// What a tab holds is there only once it was opened.
function whenThere(selector, then) {
  const look = () => {
    const node = document.querySelector(selector);
    if (!node) return;
    watch.disconnect();
    then(node);
  };
  const watch = new MutationObserver(look);
  watch.observe(document.body, { subtree: true, childList: true });
  look();
}

function choose(name) {
  if (!/^[\w-]+$/.test(name)) return; // it is no name of ours
  if (OUTER[name]) {
    choose(OUTER[name]);
    whenThere(`[role=tab][data-tab-id="${name}"]`, () => select(name));
  } else {
    select(name);
  }
}

function select(name) {
  const found = tabs(name);
  const tab = found.find((each) => each.checkVisibility()) ?? found[0];
  if (!tab || isSelected(tab)) return;
  choosing = true;
  tab.click();
  choosing = false;
}

function tell(field, value) {
  whenThere(`#${field} :is(textarea, input)`, (input) => {
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
}

const WHOLE = {
  script: (number) => {
    choose('script');
    if (number !== script) document.dispatchEvent(new CustomEvent('timbre-open-script', { detail: number }));
  },
  take: (id) => {
    choose('takes');
    tell('takes-wanted', id);
  },
  'use-voice': (key, how) => {
    tell('speak-wanted', key);
    choose('speak');
    keep('speak', how); // a reload there keeps the voice that is chosen then
  },
};

function go(address, how = 'replaceState') {
  const [, name, value] = /^([\w-]*)=?(.*)$/s.exec(address) ?? [];
  if (value && WHOLE[name]) WHOLE[name](value, how);
  else choose(name || FIRST);
}

// The script that an address names.
export function scriptHere() {
  return /^script=([\w-]+)$/.exec(here())?.[1] ?? '';
}

// Called when another script was opened.
export function opened(number) {
  if (number === script) return;
  const how = script ? 'pushState' : 'replaceState';
  script = number;
  if (place().startsWith('script')) note(how);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = Object.assign(document.createElement('textarea'), { value: text }); // a page without HTTPS
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
}

// Called by buttons of Gradio.
export async function copyHere() {
  await copy(location.href);
  return [];
}

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href*="#use-voice="]');
  if (!link) {
    const chosen = !choosing && event.target.closest?.('[role=tab], .overflow-dropdown button');
    if (chosen) requestAnimationFrame(() => note());
    return;
  }
  event.preventDefault();
  event.stopPropagation();
  go(read(link), 'pushState');
}, true);
window.addEventListener('popstate', () => go(here()));

const arrived = new MutationObserver(() => {
  if (root.classList.contains('timbre-opening')) return;
  arrived.disconnect();
  if (here()) go(here());
});
arrived.observe(root, { attributeFilter: ['class'] });
