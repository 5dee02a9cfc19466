"""Keyboard shortcuts, and the dialog that lists them.

They act on the open tab: a button of class `timbre-go` speaks, a live player stops.
"""

from __future__ import annotations

from studio.ui.i18n import both

KEYS = {
    "Ctrl + Enter": "Speak",
    "Esc": "Stop",
    "Space": "Play or pause, when you are not typing",
    "?": "This sheet, when you are not typing",
    "Tab": "On to the next field or button",
}
WAITING = "The server does not answer. Waiting for it; what you typed is kept."
_LINES = "".join(f"<dt><kbd>{key}</kbd></dt><dd>{both(what)}</dd>" for key, what in KEYS.items())

HEAD = f"""
<header class="timbre-head">
  <h1>Timbre</h1>
  <p>{both("Type, pick a voice, and listen.")}</p>
  <button type="button" data-timbre="shade">{both("Theme")}</button>
  <button type="button" data-timbre="help" aria-haspopup="dialog">{both("Shortcuts")}</button>
</header>
<p class="timbre-connection" role="alert" hidden>{both(WAITING)}</p>
<dialog class="timbre-help" aria-label="Keyboard shortcuts">
  <h2>{both("Keyboard shortcuts")}</h2>
  <dl>{_LINES}</dl>
  <form method="dialog"><button type="submit">{both("Close")}</button></form>
</dialog>
"""

# In the page's <head>, so it runs once per page.
SCRIPT = """
<script>
(() => {
  // The style shows the studio's HTML in the browser's language (studio/ui/i18n).
  const chinese = navigator.language.toLowerCase().startsWith('zh');
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

  const meant = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) return 'go';
    const writing = event.target.closest?.('form'); // there it takes back what was written
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
  const begin = () => {
    shade();
    new MutationObserver(shade).observe(document.body, { attributeFilter: ['class'] });
  };
  if (document.body) begin();
  else addEventListener('DOMContentLoaded', begin);
})();
</script>
"""
