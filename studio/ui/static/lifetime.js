// How long an element is in the page. Gradio tells a component when it appears, never when it goes.

const GRACE = 500; // ms for which an element may be out of the page while it is moved

const lives = new Map(); // element -> AbortController
let observer = null;
let timer = null;

// A signal that is aborted once the element has left the page.
export function lifeOf(element) {
  observer ??= observed();
  if (!lives.has(element)) lives.set(element, new AbortController());
  return lives.get(element).signal;
}

export function whenGone(element, work) {
  lifeOf(element).addEventListener('abort', work, { once: true });
}

function observed() {
  const made = new MutationObserver(() => {
    if (timer === null) timer = setTimeout(endLives, GRACE);
  });
  made.observe(document.documentElement, { childList: true, subtree: true });
  return made;
}

function endLives() {
  timer = null;
  for (const [element, life] of lives) {
    if (element.isConnected) continue;
    lives.delete(element);
    life.abort();
  }
}
