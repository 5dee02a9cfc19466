// Keyboard shortcuts, the theme that was chosen, and the dialog of shortcuts (studio/ui/shortcuts.py). They
// act on the open tab: a button of class timbre-go speaks, the player's bar stops.

// The style shows the studio's HTML in the browser's language (studio/ui/i18n).
export const chinese = navigator.language.toLowerCase().startsWith('zh');
document.documentElement.classList.toggle('timbre-zh', chinese);
const shown = (selector) =>
  [...document.querySelectorAll(selector)].find((own) => own.checkVisibility() && !own.disabled);
const sheet = () => document.querySelector('dialog.timbre-help');
const typing = (target) => target.closest('input, textarea, select, [contenteditable=true]');
const shades = 'timbre-shade';
// The chosen theme overrides the system's, which Gradio applies at start.
const shade = () => {
  const [{ classList }, chosen] = [document.body, localStorage.getItem(shades)];
  if (chosen && classList.contains('dark') !== (chosen === 'true')) classList.toggle('dark');
};

const keys = {
  go: () => shown('.timbre-go')?.click(),
  stop: () => shown('.timbre-player .stop')?.click(),
  play: () => shown('.timbre-player .pause')?.click(),
  help: () => sheet().showModal(),
  shade: () => {
    localStorage.setItem(shades, String(!document.body.classList.contains('dark')));
    shade();
  },
};

// An open menu, a search and an input method have their own use for Escape.
const ESCAPES = 'input[aria-expanded=true], input[type=search]:not(:placeholder-shown)';

const meant = (event) => {
  if (event.isComposing) return null;
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) return 'go';
  const writing = event.target.closest?.(`form, ${ESCAPES}`); // in a form it takes back what was written
  if (event.key === 'Escape' && !sheet()?.open && !writing) return 'stop';
  if (event.key === '?' && !typing(event.target)) return 'help';
  if (event.key === ' ' && event.target === document.body) return 'play';
  return null;
};

document.addEventListener('keydown', (event) => {
  const wanted = event.repeat ? null : meant(event);
  if (!wanted) return;
  if (wanted === 'play' && !shown('.timbre-player .pause')) return;
  if (wanted !== 'stop') event.preventDefault();
  keys[wanted]();
}, true);
// Arrows go from tab to tab.
document.addEventListener('keydown', (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const bar = step && event.target.closest?.('[role=tab]')?.closest('[role=tablist]');
  if (!bar) return;
  const tabs = [...bar.querySelectorAll('[role=tab]')].filter((each) => each.offsetParent);
  const next = tabs.at((tabs.indexOf(event.target) + step) % tabs.length);
  event.preventDefault();
  next.focus();
  next.click();
});
document.addEventListener('click', (event) => {
  const wanted = event.target.closest?.('[data-timbre]')?.dataset.timbre;
  if (wanted) keys[wanted]();
});
shade();
new MutationObserver(shade).observe(document.body, { attributeFilter: ['class'] });
