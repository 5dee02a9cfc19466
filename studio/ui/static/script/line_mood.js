// The mood of a whole line, as its edit form shows it: a tag around the text, `[lower 0.6] … [/lower]`,
// before a pause at its end. Tags inside the text stay where they are.

const TAGGED = /^\s*\[\s*([^[\]/]+?)(?:[\s:=]+(\d*[.,]?\d+))?\s*\]\s*([^]*)$/;
const PAUSE = /\s*\[(?:pause|break|silence)[^[\]]*\]\s*$/i;

// known: the moods that there are; { mood: '' } where the text does not begin with one of them
export function moodOf(text, known) {
  const [pause] = PAUSE.exec(text) ?? [''];
  const plain = { mood: '', strength: 1, said: text.slice(0, text.length - pause.length), pause };
  const [, name, strength, rest] = TAGGED.exec(plain.said) ?? [];
  const mood = known.find((each) => each.toLowerCase() === name?.toLowerCase());
  if (!mood) return plain;
  const close = new RegExp(`\\s*\\[\\s*/\\s*${escaped(name)}\\s*\\]\\s*$`, 'i');
  const given = strength === undefined ? 1 : Number(strength.replace(',', '.'));
  return { ...plain, mood, strength: given, said: rest.replace(close, '') };
}

export function inMood(text, mood, strength, known) {
  const { said, pause } = moodOf(text, known);
  if (!mood) return said + pause;
  const dose = Number(strength) === 1 ? '' : ` ${Number(strength)}`;
  return `[${mood}${dose}] ${said.trim()} [/${mood}]${pause}`;
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// ---- the fields of a form: `mood`, `strength`, `text`

const names = (form) => [...form.mood.options].map(({ value }) => value).filter(Boolean);

export function showMood(form) {
  if (!form.mood) return;
  const { mood, strength } = moodOf(form.text.value, names(form));
  form.mood.value = mood;
  form.strength.value = strength;
  form.strength.hidden = !mood;
}

export function takeMood(form) {
  form.text.value = inMood(form.text.value, form.mood.value, form.strength.value, names(form));
  form.strength.hidden = !form.mood.value;
}
