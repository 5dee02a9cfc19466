// A canvas is drawn anew where its size or the page's theme changes, as long as its component is there.

import { whenGone } from './lifetime.js';

export function drawnAnew(root, canvas, draw) {
  const sized = new ResizeObserver(draw);
  const themed = new MutationObserver(draw);
  sized.observe(canvas);
  themed.observe(document.body, { attributeFilter: ['class'] });
  whenGone(root, () => {
    sized.disconnect();
    themed.disconnect();
  });
}
