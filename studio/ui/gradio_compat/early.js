// Runs before any module is there.

// A script that did not come (see connection.js).
window.addEventListener('vite:preloadError', () => (window.timbreTorn = true), { once: true });

// Hides the page until opening.js shows it, or, where no module comes, for 10 s at most.
document.documentElement.classList.add('timbre-opening');
setTimeout(() => document.documentElement.classList.remove('timbre-opening'), 10000);
