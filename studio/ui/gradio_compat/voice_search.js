// What is typed into a menu of voices goes to the server, which lists the voices that it finds. Gradio
// would show all that is listed, with another one marked: at a Home key it looks again.

const PAUSE = 150; // ms after the last letter
const CHOOSING = /^(Arrow|Home|End|Enter|Escape)/;
let [timer, typed, moved] = [0, false, false]; // moved: a key chose among what is listed, since

const menuOf = ({ target }) => target.closest?.('.timbre-voice-menu');

function tell(menu, words) {
  clearTimeout(timer);
  const field = document.querySelector(`#${menu.id}-words :is(textarea, input)`);
  if (!field || field.value === words) return;
  field.value = words;
  field.dispatchEvent(new Event('input', { bubbles: true }));
}

function tellSoon(menu) {
  clearTimeout(timer);
  timer = setTimeout(() => tell(menu, menu.querySelector('input').value.trim()), PAUSE);
}

document.addEventListener('input', (event) => {
  const menu = menuOf(event);
  if (!menu) return;
  [typed, moved] = [true, false];
  tellSoon(menu);
});
document.addEventListener('keydown', (event) => {
  if (event.isTrusted && menuOf(event) && CHOOSING.test(event.key)) moved = true;
});
// A voice was selected in a menu of several: Gradio has emptied its field.
for (const kind of ['keyup', 'pointerup']) {
  document.addEventListener(kind, (event) => typed && menuOf(event) && tellSoon(menuOf(event)));
}
document.addEventListener('focusout', (event) => {
  const menu = menuOf(event);
  if (!menu) return;
  typed = false;
  tell(menu, '');
});

// The server has listed what it found: have Gradio look at it. Called by an event (studio/ui/voice_search.py).
export function showFound() {
  const field = document.activeElement;
  if (!typed || moved || !menuOf({ target: field })) return;
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true }));
}
