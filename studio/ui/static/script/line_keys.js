// Keys of the lines of a script: the line that has the focus is played, made anew, edited, joined; the
// arrows go on to the next one (studio/ui/shortcuts.py lists them).

const BUTTONS = {
  p: '[data-play=listen]',
  o: '[data-play=onward]',
  r: '[data-play=redo]',
  e: '[data-edit]',
  l: ':is([data-act=lock], [data-act=unlock])',
  j: '[data-act=join]',
};

export function keyOnLine(event) {
  const article = event.target;
  if (article.nodeName !== 'ARTICLE' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.repeat && !event.key.startsWith('Arrow')) return;
  const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
  if (step) {
    let next = article[step];
    while (next && next.nodeName !== 'ARTICLE') next = next[step];
    if (next) focusLine(next);
  } else if (BUTTONS[event.key.toLowerCase()]) {
    article.querySelector(BUTTONS[event.key.toLowerCase()])?.click();
  } else {
    return;
  }
  event.preventDefault();
}

// One line of all is reached by Tab.
export function focusLine(article) {
  article.focus({ preventScroll: true });
  article.scrollIntoView({ block: 'nearest' });
}

export function keepOneStop(root) {
  const all = [...root.querySelectorAll('article')];
  const stop = all.find((each) => each === document.activeElement) ?? all.find((each) => each.tabIndex === 0) ?? all[0];
  for (const each of all) each.tabIndex = each === stop ? 0 : -1;
}
