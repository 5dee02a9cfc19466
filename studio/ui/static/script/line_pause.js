// The pause after a line, as its edit form shows it: a tag at the end of the text, `[pause 1s]`.

const PAUSE = /\s*(?:\[(?:pause|break|silence)\s*[:=]?\s*([\d.,]*)\s*(ms|s)?[^[\]]*\])\s*$/i;
const BARE = 0.7; // seconds of a bare [pause], as studio/scripts/text/tags.py has it
export const CUT = 0.3; // seconds of the pause where a line is split

// Seconds of the pause at the end of a text; '' without one.
export function pauseOf(text) {
  const found = PAUSE.exec(text);
  if (!found) return '';
  const seconds = found[1] ? Number(found[1].replace(',', '.')) : BARE;
  return found[2]?.toLowerCase() === 'ms' ? seconds / 1000 : seconds;
}

export function withPause(text, seconds) {
  const words = text.replace(PAUSE, '');
  return seconds === '' ? words : `${words} [pause ${Number(seconds)}s]`;
}

// The text with a pause at a place, which splits the line; null where nothing stands on one side.
export function cutAt(text, at) {
  const [before, after] = [text.slice(0, at).trim(), text.slice(at).trim()];
  if (!before || !withPause(after, '').trim()) return null;
  return `${before} [pause ${CUT}s] ${after}`;
}
