// A link to #use-voice=KEY, wherever it stands, picks that voice under Speak and goes there.
document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href*="#use-voice="]');
  if (!link) return;
  event.preventDefault();
  event.stopPropagation();
  const wanted = document.querySelector('#speak-wanted :is(textarea, input)');
  wanted.value = decodeURIComponent(link.getAttribute('href').split('#use-voice=')[1]);
  wanted.dispatchEvent(new Event('input', { bubbles: true }));
  document.querySelector('[role="tablist"] button[role="tab"]')?.click();
}, true);
