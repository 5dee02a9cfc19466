// Names for screen readers, and hints in empty fields, in the browser's language. The server writes them in
// English, with the Chinese beside it in data-zh (studio/ui/i18n).

import { chinese } from './shortcuts.js';

function translate() {
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-zh]'))) {
    for (const name of ['aria-label', 'placeholder']) {
      if (each.hasAttribute(name)) each.setAttribute(name, each.dataset.zh);
    }
    delete each.dataset.zh;
  }
}

if (chinese) {
  translate();
  new MutationObserver(translate).observe(document.documentElement, { childList: true, subtree: true });
}
