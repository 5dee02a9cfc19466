// Runs before any module is there: remembers that a script did not come (see connection.js).
window.addEventListener('vite:preloadError', () => (window.timbreTorn = true), { once: true });
