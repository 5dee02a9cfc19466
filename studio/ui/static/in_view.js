// What a press has opened elsewhere in the page comes into view.

export function bring(selector) {
  requestAnimationFrame(() => {
    const opened = document.querySelector(selector);
    if (!opened?.checkVisibility()) return;
    const { top } = opened.getBoundingClientRect();
    if (top < 0 || top > window.innerHeight / 2) opened.scrollIntoView();
  });
}
