import(new URL('MODULE', document.baseURI)).then(
  ({ mount }) => mount({ element, trigger, props, server, watch }, OPTIONS),
  () => window.dispatchEvent(new Event('vite:preloadError')),
);
