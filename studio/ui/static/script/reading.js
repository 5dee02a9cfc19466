// Reading along: the word that is heard is marked, a press on a word plays from there, and words that are
// selected can be made anew. Texts stay as they are: words are marked by the browser's highlights.

const MARKED = 'timbre-word';

export class Reading {
  // ask(line): [[first character, the one after, first sample, last sample], …] of a line's words
  constructor(root, ask) {
    this.root = root;
    this.ask = ask;
    this.lines = new Map(); // line -> { key, words }: `key` tells one sound and text from another
    this.shown = ''; // the word that is marked
  }

  // sample: of the line's sound; article: the line
  mark(article, sample) {
    const text = textOf(article);
    const words = text && isRendered(article) ? this.wordsOf(article, text) : [];
    const word = words.findLast(([, , begins]) => begins <= sample);
    const shown = word ? [article.dataset.line, ...word].join() : '';
    if (shown === this.shown) return;
    this.shown = shown;
    if (!word || word[1] > text.length || !globalThis.Highlight) return this.clear();
    const range = new Range();
    range.setStart(text, word[0]);
    range.setEnd(text, word[1]);
    CSS.highlights.set(MARKED, new Highlight(range));
  }

  clear() {
    this.shown = '';
    globalThis.CSS?.highlights?.delete(MARKED);
  }

  // The times of a line's words, asked for once per sound.
  wordsOf(article, text) {
    const key = `${article.querySelector('.sound')?.innerHTML}${text.data}`;
    const known = this.lines.get(article.dataset.line);
    if (known?.key === key) return known.words;
    const fresh = { key, words: [] };
    this.lines.set(article.dataset.line, fresh);
    this.ask(Number(article.dataset.line)).then((words) => (fresh.words = words ?? []), () => {});
    return [];
  }

  // The character of a line's text that is pressed: { line, at }; null beside all text.
  pressed({ clientX, clientY, target }) {
    const article = target.closest?.('article');
    const text = article && target.closest('.said p') && textOf(article);
    if (!text || !isRendered(article) || !getSelection().isCollapsed) return null;
    const place = placeAt(clientX, clientY);
    if (place?.node !== text) return null;
    return { line: Number(article.dataset.line), at: place.offset };
  }

  // The selected characters of one line with a sound: { line, at, to }; null if there are none.
  selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    const article = range.startContainer.parentElement?.closest('article');
    const text = article && this.root.contains(article) && textOf(article);
    if (!text || !isRendered(article) || range.startContainer !== text) return null;
    const to = range.endContainer === text ? range.endOffset : text.length;
    return { line: Number(article.dataset.line), at: range.startOffset, to };
  }
}

const textOf = (article) => {
  const text = article.querySelector('.said p')?.firstChild;
  return text?.nodeType === Node.TEXT_NODE ? text : null; // else a silence, in both languages
};
const isRendered = (article) => ['done', 'locked'].includes(article.dataset.status);

function placeAt(x, y) {
  /** @type {any} */
  const page = document; // Safari has the older of the two
  const found = page.caretPositionFromPoint?.(x, y);
  if (found) return { node: found.offsetNode, offset: found.offset };
  const range = page.caretRangeFromPoint?.(x, y);
  return range && { node: range.startContainer, offset: range.startOffset };
}
