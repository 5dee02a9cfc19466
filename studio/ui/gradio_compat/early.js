// Runs before any module is there.

// A script that did not come (see connection.js).
window.addEventListener('vite:preloadError', () => (window.timbreTorn = true), { once: true });

// Hides the page until opening.js shows it, or, where no module comes, for 10 s at most.
document.documentElement.classList.add('timbre-opening');
setTimeout(() => document.documentElement.classList.remove('timbre-opening'), 10000);

// A browser may refuse its storage: cookies are blocked, or the page is in a frame of another site. No
// component of Gradio's appears then. What is kept stays here instead, until the page is closed.
for (const name of ['localStorage', 'sessionStorage']) {
  try {
    if (window[name]) continue;
  } catch {
    // refused
  }
  const kept = new Map();
  Object.defineProperty(window, name, {
    value: {
      getItem: (key) => kept.get(String(key)) ?? null,
      setItem: (key, value) => void kept.set(String(key), String(value)),
      removeItem: (key) => void kept.delete(String(key)),
      clear: () => kept.clear(),
      key: (place) => [...kept.keys()][place] ?? null,
      get length() {
        return kept.size;
      },
    },
  });
}
