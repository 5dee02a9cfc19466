// Style sheets that a module brings along, each once.

const added = new Set();

export function addStyle(url) {
  if (added.has(url.href)) return;
  added.add(url.href);
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = url.href;
  document.head.append(link);
}
