// What Gradio's own components leave out for screen readers: a name on an element without a role, and
// a name that is not what the button says.

let due = false;

function mend() {
  due = false;
  document.querySelectorAll('div.empty[aria-label]:not([role])').forEach((each) => each.setAttribute('role', 'img'));
  document.querySelectorAll('button.upload-container[aria-label]').forEach((each) => each.removeAttribute('aria-label'));
}

new MutationObserver(() => {
  if (!due) requestAnimationFrame(mend);
  due = true;
}).observe(document.documentElement, { childList: true, subtree: true });
