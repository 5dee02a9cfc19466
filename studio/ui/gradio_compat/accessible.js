// What Gradio's own components leave out for screen readers and keys: a name on an element without a
// role, a name that is not what the button says, one name for the radio buttons of a group,
// the end of a slider's move by keys.

let due = false;

// Gradio gives each radio button a name of its own, and another one when it is chosen: then Tab stops
// at each, and no arrow goes on.
function joinRadios(group) {
  const [first, ...others] = group.querySelectorAll('input[type=radio]');
  for (const each of others) if (each.name !== first.name) each.name = first.name;
}

function mend() {
  due = false;
  document.querySelectorAll('div.empty[aria-label]:not([role])').forEach((each) => each.setAttribute('role', 'img'));
  document.querySelectorAll('fieldset').forEach(joinRadios);
  document.querySelectorAll('button.upload-container[aria-label]').forEach((each) => each.removeAttribute('aria-label'));
}

new MutationObserver((changes) => {
  for (const { type, target } of changes) {
    if (type === 'attributes' && target instanceof HTMLInputElement && target.type === 'radio') {
      const group = target.closest('fieldset');
      if (group) joinRadios(group); // at once: the next key may be pressed already
    } else if (type === 'childList' && !due) {
      requestAnimationFrame(mend);
      due = true;
    }
  }
}).observe(document.documentElement, { childList: true, subtree: true, attributeFilter: ['name'] });

// A slider that was moved by keys is let go as one that was dragged: Gradio tells of a pointer's end only.
document.addEventListener('keyup', ({ target, key }) => {
  const moves = /^(Arrow|Page)|^(Home|End)$/.test(key);
  if (moves && target instanceof HTMLInputElement && target.type === 'range') {
    target.dispatchEvent(new PointerEvent('pointerup', { bubbles: true }));
  }
});
