// Components are mounted in the order in which they appeared, whichever module comes first.
const module = import(new URL('MODULE', document.baseURI));
window.timbreMounting = Promise.allSettled([window.timbreMounting, module]).then(() => module).then(
  ({ mount }) => mount({ element, trigger, props, server, watch }, OPTIONS),
  () => window.dispatchEvent(new Event('vite:preloadError')),
).catch((error) => setTimeout(() => { throw error; }));
