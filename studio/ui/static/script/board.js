// The lines and the cast of a script. The server sends pieces of HTML by key; only what has changed
// in them is changed in the page, and nothing where somebody is writing. What is pressed is told.

import { opened, scriptHere } from '../addresses.js';
import { lifeOf } from '../lifetime.js';
import { players } from '../player/player.js';
import { Sound } from '../player/sound.js';
import { addStyle } from '../style.js';
import { isLate } from './late.js';
import { LineDrag } from './line_drag.js';
import { focusLine, keepOneStop, keyOnLine } from './line_keys.js';
import { showMood, takeMood } from './line_mood.js';
import { cutAt, pauseOf, withPause } from './line_pause.js';
import { elementOf, patch } from './patch.js';
import { Reading } from './reading.js';

const KEPT = 'timbre-script'; // where the browser remembers which script it had open
const MINE = 'timbre-scripts';
const DRAFT = 'timbre-script-draft';
const ALOUD = 'timbre-script-aloud'; // whether what is rendered is played, as it was ticked last
const FOLLOW = 120; // ms between looks at what is heard
const TOUCHED = 400; // ms for which selected words may still be made anew
const MOST_MINE = 100; // scripts that are remembered
const TYPED = 250; // ms after the last letter of a search

// What a board has before the server tells more.
const NOTHING = { number: '', items: [], changed: 0, heard: {}, answered: [], refused: '', music: false, view: '' };

// Each tab has its own; a new one begins with the latest.
function keep(name, value) {
  for (const store of [sessionStorage, localStorage]) write(store, name, value);
}

function write(store, name, value) {
  try {
    store.setItem(name, value);
  } catch {
    // it is full
  }
}

function recall(name) {
  return sessionStorage.getItem(name) ?? localStorage.getItem(name);
}

function field(name) {
  return document.querySelector(`#script-${name} :is(textarea, input)`)?.value ?? '';
}

function newId() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (each) => each.toString(36)).join('');
}

function isSeen(node) {
  const { top, bottom } = node.getBoundingClientRect();
  const covered = document.querySelector('.timbre-player')?.offsetHeight ?? 0; // at the bottom of the page
  return bottom > 0 && top >= 0 && bottom <= window.innerHeight - covered;
}

class Board {
  // tell: { act(detail), play(detail), words(line), changed(), late() }
  constructor(root, tell) {
    this.root = root;
    this.tell = tell;
    this.pieces = new Map(); // key -> { html, drawn, node }: `drawn` is the node as the server sent it
    this.value = NOTHING;
    this.pressed = 0; // when the answer to a press came last
    this.held = null; // what the pointer is down on
    this.pressing = false; // the pointer is down somewhere in the page
    this.comparing = new Set(); // lines whose takes are shown
    this.search = 0; // timer
    this.reading = new Reading(root, (line) => tell.words({ number: this.value.number, line }));
    this.chosen = null; // the words that were selected last
    this.unselected = 0; // timer
    this.saying = null; // the line that is spoken once its form is saved
    this.mine = ''; // scripts that the server counts as this page's
    this.drag = new LineDrag(root, (moved) => tell.act({ do: 'move', ...moved }));
    root.addEventListener('pointerdown', ({ target }) => (this.held = target));
    const life = lifeOf(root);
    document.addEventListener('pointerdown', () => (this.pressing = true), { signal: life, capture: true });
    document.addEventListener('focusin', ({ target }) => this.unfold(target), { signal: life });
    document.addEventListener('selectionchange', () => this.selected(), { signal: life });
    root.addEventListener('mousedown', (event) => event.target.closest('[data-play=words]') && event.preventDefault());
    for (const over of ['pointerup', 'pointercancel']) {
      window.addEventListener(over, () => this.letGo(), { signal: life });
    }
    const timer = setInterval(() => this.look(), FOLLOW);
    life.addEventListener('abort', () => {
      clearInterval(timer);
      clearTimeout(this.search);
      clearTimeout(this.unselected);
      this.drag.end();
    });
    root.addEventListener('click', (event) => this.click(event));
    root.addEventListener('change', (event) => this.change(event));
    root.addEventListener('submit', (event) => this.submit(event));
    root.addEventListener('reset', (event) => this.close(event.target));
    root.addEventListener('keydown', (event) => this.key(event));
    root.addEventListener('input', (event) => this.searched(event));
  }

  // An answer of the server. One that is late has stopped the polls, too, if its script was silent.
  // Of a script that is gone it has only which press was refused.
  take(told) {
    const value = told.items ? told : { ...this.value, ...told };
    if (isLate(value, this.value, performance.now() - this.pressed)) return this.tell.late();
    if (!value.polled) this.pressed = performance.now();
    this.show(value);
  }

  // value: { number, items: [[key, html], …], changed, heard: { take: [[sample, line], …] }, answered: [press, …],
  // refused, music, view, polled }
  show(value) {
    const [line, selector] = this.focused();
    if (value.number !== this.value.number) this.forgetView();
    const anew = value.number !== this.value.number || value.changed !== this.value.changed;
    if (anew && (value.music || this.value.music)) this.tell.changed();
    this.value = value;
    this.closeSaved();
    const { number, items } = value;
    if (items.length) this.remember(number);
    if (items.length && this.root.classList.contains('lines')) opened(number);
    const wanted = new Set(items.map(([key]) => key));
    for (const [key, { node }] of this.pieces) {
      if (wanted.has(key)) continue;
      node.remove();
      this.pieces.delete(key);
    }
    items.forEach(([key, html], place) => this.put(key, html, place));
    keepOneStop(this.root);
    const gone = selector && !this.root.contains(document.activeElement); // a moved node loses it
    if (gone) this.root.querySelector(`article[data-line="${line}"] ${selector}`)?.focus();
    this.follow();
  }

  focused() {
    const article = this.root.contains(document.activeElement)
      ? document.activeElement.closest('article')
      : null;
    return [article?.dataset.line, this.focusIn(article)];
  }

  // Called when another script is shown.
  forgetView() {
    this.comparing.clear();
    const search = this.root.querySelector('[data-search]');
    if (search) search.value = '';
  }

  put(key, html, place) {
    const piece = this.pieces.get(key) ?? { html: null, drawn: null, node: null };
    if (piece.html !== html && !this.isBusy(piece.node)) this.draw(key, piece, html);
    if (this.root.children[place] !== piece.node) {
      this.root.insertBefore(piece.node, this.root.children[place] ?? null);
    }
  }

  draw(key, piece, html) {
    const drawn = elementOf(html);
    const focus = this.focusIn(piece.node);
    /** @type {any} */
    const node = piece.node ? patch(piece.node, piece.drawn, drawn) : drawn.cloneNode(true);
    if (this.comparing.has(node.dataset.line)) this.compare(node, true);
    this.pieces.set(key, Object.assign(piece, { html, drawn, node }));
    if (focus && !node.contains(document.activeElement)) node.querySelector(focus)?.focus();
  }

  // The script that this tab had open, and all that its browser has had: the latest come last.
  last() {
    const [kept, mine] = [recall(KEPT), localStorage.getItem(MINE)].map((each) => each ?? '');
    const draft = JSON.parse(recall(DRAFT) ?? 'null');
    const asked = scriptHere();
    return { number: asked || kept, asked, mine, draft, aloud: recall(ALOUD) !== 'false' };
  }

  // What is typed is kept until it was read, so that a reload does not lose it.
  typed(target) {
    if (!target.closest?.('#script-text')) return;
    const draft = { number: this.value.number, seen: field('seen'), text: target.value };
    keep(DRAFT, JSON.stringify(draft));
  }

  // Text that was typed and not read, while another script comes.
  left() {
    const [text, seen] = [field('text'), field('seen')];
    return text === seen ? null : { number: this.value.number, text, seen };
  }

  ticked(target) {
    if (target.closest?.('.timbre-aloud')) keep(ALOUD, String(target.checked));
  }

  forgetRead() {
    const typed = field('text') !== field('seen');
    if (this.wasTyped && !typed) keep(DRAFT, 'null');
    this.wasTyped = typed;
    this.fold(Boolean(this.value.number) && !typed); // the lines say it all
  }

  unfold(target) {
    target.closest?.('#script-text')?.classList.remove('timbre-folded');
  }

  // Folds the text, unless somebody is in it. Nothing moves while something is pressed.
  fold(folded) {
    const box = document.querySelector('#script-text');
    if (!box || this.pressing) return;
    const shut = box.classList.toggle('timbre-folded', folded && !box.contains(document.activeElement));
    if (shut) box.querySelector('textarea').scrollTop = 0; // its first line is what is seen
  }

  remember(number) {
    keep(KEPT, number);
    this.addMine(number);
  }

  addMine(numbers) {
    const all = `${this.last().mine} ${numbers}`.split(' ').filter(Boolean);
    const latest = [...new Set(all.reverse())].slice(0, MOST_MINE).reverse();
    write(localStorage, MINE, latest.join(' '));
  }

  look() {
    this.follow();
    if (!this.root.classList.contains('lines')) return;
    this.forgetRead();
    const mine = field('mine'); // with a script that became one as another was opened
    if (mine !== this.mine) this.addMine(mine);
    this.mine = mine;
  }

  // The line that is heard now is marked; one on another page can be found.
  follow() {
    const now = players.map((each) => each.now).find((each) => this.marks(each));
    const played = now?.report?.played ?? -1;
    const [begins, line] = this.marks(now)?.filter(([sample]) => sample <= played).at(-1) ?? [];
    const before = this.root.querySelector('article.heard');
    let shown = line === undefined;
    for (const node of this.root.querySelectorAll('article')) {
      const heard = node.dataset.line === String(line);
      node.classList.toggle('heard', heard);
      shown ||= heard;
    }
    const heard = this.root.querySelector('article.heard');
    if (heard) this.reading.mark(heard, played - begins);
    else if (this.reading.shown) this.reading.clear();
    this.keepInView(before, heard);
    const find = this.root.querySelector('[data-act=find]');
    if (find) Object.assign(find, { hidden: shown }).dataset.line = line ?? '';
  }

  // The line that is heard comes and stays on screen, unless somebody has scrolled away from the one before.
  keepInView(before, heard) {
    if (this.pressing) return; // it would miss its button
    if (!heard || heard === before || isSeen(heard) || (before && !isSeen(before))) return;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    heard.scrollIntoView({ block: 'center', behavior: still ? 'auto' : 'smooth' });
  }

  marks(now) {
    return now && !now.over ? this.value.heard[now.id] : undefined;
  }

  // Whether somebody is writing or pressing here.
  isBusy(node) {
    return Boolean(node?.contains(this.held) || node?.querySelector('form:not([hidden])'));
  }

  // Waits for the click, which must reach the button that was pressed.
  letGo() {
    setTimeout(() => (this.pressing = false));
    if (!this.held) return;
    setTimeout(() => {
      this.held = null;
      this.show(this.value);
    });
  }

  focusIn(node) {
    /** @type {any} */
    const focused = document.activeElement;
    const data = node?.contains(focused) ? focused.dataset : {};
    const name = ['act', 'play', 'edit', 'grip', 'takes'].find((each) => each in data);
    return name && (data[name] ? `[data-${name}="${data[name]}"]` : `[data-${name}]`);
  }

  // ---- from the person

  // F6 goes to the lines, and from them to the text.
  jump(event) {
    if (event.key !== 'F6' || !this.root.checkVisibility()) return;
    event.preventDefault();
    const line = this.root.querySelector('article[tabindex="0"]');
    if (line && !this.root.contains(document.activeElement)) return focusLine(line);
    /** @type {any} */
    const text = document.querySelector('#script-text textarea');
    text?.focus();
  }

  click(event) {
    const { target } = event;
    const button = target.closest('button');
    if (!button) return this.pressWord(event);
    if ('edit' in button.dataset) this.open(button.closest('article'));
    if ('cut' in button.dataset) this.cut(button.form);
    if ('takes' in button.dataset) this.toggleTakes(button.closest('article'));
    if (button.dataset.act === 'find') this.forgetView();
    if (button.dataset.act) this.tell.act({ do: button.dataset.act, ...this.about(button) });
    if (button.dataset.play) this.play(button);
  }

  play(button) {
    const what = { do: button.dataset.play, ...this.about(button) };
    if (what.do === 'words') Object.assign(what, this.chosen);
    this.speak(what);
  }

  // Speech that is made anew does not stop what plays.
  speak(what) {
    Sound.wake(); // a browser starts its sound inside a press only
    const quiet = ['redo', 'words', 'saved'].includes(what.do) && players.some(({ active }) => active);
    const wanted = what.do === 'saved' ? 'listen' : what.do;
    this.tell.play({ ...what, do: wanted, aloud: !quiet });
  }

  pressWord(event) {
    const word = this.reading.pressed(event);
    if (word) this.speak({ do: 'word', ...word });
  }

  selected() {
    const chosen = this.reading.selected();
    const again = this.root.querySelector('[data-play=words]');
    if (!again) return;
    if (chosen) this.chosen = chosen;
    clearTimeout(this.unselected); // a touch takes the selection away before it presses the button
    if (chosen) again.hidden = false;
    else this.unselected = setTimeout(() => (again.hidden = true), TOUCHED);
  }

  change({ target }) {
    if (['mood', 'strength'].includes(target.name)) takeMood(target.form);
    if (target.name === 'pause') target.form.text.value = withPause(target.form.text.value, target.value);
    if (!target.dataset.act) return;
    this.tell.act({ do: target.dataset.act, value: target.value, ...this.about(target) });
  }

  about(element) {
    const line = element.closest('[data-line]')?.dataset.line;
    const { who, page, take, part } = element.dataset;
    return { line: line && Number(line), who, take, part, page: page && Number(page) };
  }

  searched({ target }) {
    if (target.name === 'text') this.showFields(target.form);
    if (!('search' in target.dataset)) return;
    clearTimeout(this.search);
    const press = { do: target.dataset.search, value: target.value };
    this.search = setTimeout(() => this.tell.act(press), TYPED);
  }

  toggleTakes(article) {
    const { line } = article.dataset;
    const shown = !this.comparing.delete(line);
    if (shown) this.comparing.add(line);
    this.compare(article, shown);
  }

  compare(article, shown) {
    const list = article.querySelector('ol.takes');
    if (!list) return;
    list.hidden = !shown;
    article.querySelector('[data-takes]').setAttribute('aria-expanded', String(shown));
  }

  // ---- forms

  open(article) {
    const form = article.querySelector('form');
    form.hidden = false;
    article.classList.add('open');
    this.showFields(form);
    form.text.focus();
  }

  // Those that stand in the text as tags.
  showFields(form) {
    showMood(form);
    form.pause.value = pauseOf(form.text.value);
  }

  // At the cursor, by a pause there.
  cut(form) {
    const text = cutAt(form.text.value, form.text.selectionStart);
    if (text === null) return form.text.focus();
    form.text.value = text;
    this.saying = null;
    form.requestSubmit();
  }

  close(form) {
    this.hide(form);
    form.closest('article').querySelector('[data-edit]')?.focus();
    this.show(this.value); // what has changed meanwhile
  }

  hide(form) {
    form.hidden = true;
    delete form.dataset.sent;
    form.closest('article').classList.remove('open');
  }

  // A form stays open until the server has saved it, however long that takes; refused, it stays.
  closeSaved() {
    for (const form of this.root.querySelectorAll('form[data-sent]')) {
      if (form.dataset.sent === this.value.refused) delete form.dataset.sent;
      if (!this.value.answered.includes(form.dataset.sent)) continue;
      const { line } = this.about(form);
      const focused = form.contains(document.activeElement);
      this.hide(form);
      if (focused) form.closest('article').querySelector('[data-edit]')?.focus();
      const { drawn } = this.pieces.get(`line-${line}`);
      form.replaceWith(drawn.querySelector('form').cloneNode(true)); // without what was written in it
      this.sayIf(line);
    }
  }

  sayIf(line) {
    if (line !== this.saying) return;
    this.saying = null;
    this.speak({ do: 'saved', line });
  }

  submit(event) {
    event.preventDefault();
    const form = event.target;
    const [text, who, direction] = [form.text.value, form.who.value, form.direction?.value];
    const kept = text === form.text.defaultValue && direction === form.direction?.defaultValue;
    const { line } = this.about(form);
    if (event.submitter) this.saying = null; // its button saves, the Enter key speaks too
    if (kept && form.who.selectedOptions[0].defaultSelected) {
      this.sayIf(line);
      return this.close(form);
    }
    form.dataset.sent = newId();
    const sent = { do: 'edit', press: form.dataset.sent, text, who, direction, was: form.text.defaultValue };
    this.tell.act({ ...this.about(form), ...sent });
  }

  key(event) {
    if ('grip' in event.target.dataset) return this.keyOnGrip(event);
    keyOnLine(event);
    const form = event.target.closest('form');
    if (!form || event.isComposing) return;
    if (event.key === 'Escape') {
      event.stopPropagation();
      form.reset();
    } else if (event.key === 'Enter' && ['text', 'direction'].includes(event.target.name) && !event.shiftKey) {
      if (event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.altKey) return this.cut(form);
      this.saying = this.about(form).line;
      Sound.wake();
      form.requestSubmit();
    }
  }

  keyOnGrip(event) {
    if (event.key === 'Escape') this.drag.end();
    const step = { ArrowUp: 'up', ArrowDown: 'down' }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.tell.act({ do: step, ...this.about(event.target) });
  }
}

// Called by the component of Gradio when it appears (studio/ui/tabs/script/tab.py). The board of lines
// also keeps what is typed, and tells when the page is looked at again.
export function mount({ element, trigger, props, server, watch }, { lines }) {
  addStyle(new URL('./script.css', import.meta.url));
  const root = element.querySelector('.timbre-board');
  const board = new Board(root, {
    act: (detail) => trigger('act', detail),
    play: (detail) => trigger('play', detail),
    words: (asked) => server.words(asked),
    changed: () => trigger('changed', {}), // a script with music
    late: () => trigger('late', {}),
  });
  const first = { ...NOTHING, ...props.value };
  board.show(first);
  watch('value', () => board.take(props.value));
  if (!lines) return;
  const signal = lifeOf(root);
  document.addEventListener('input', ({ target }) => board.typed(target), { signal });
  document.addEventListener('change', ({ target }) => board.ticked(target), { signal });
  document.addEventListener('keydown', (event) => board.jump(event), { signal });
  const back = () => document.hidden || trigger('back', {});
  document.addEventListener('visibilitychange', back, { signal });
  const named = (/** @type {any} */ { detail }) => trigger('arrive', { ...board.last(), number: detail, asked: detail, left: board.left() });
  document.addEventListener('timbre-open-script', named, { signal });
  if (!first.items.length) trigger('arrive', board.last());
}
