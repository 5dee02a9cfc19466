// The lines and the cast of a script. The server sends pieces of HTML by key; only what has changed
// in them is changed in the page, and nothing where somebody is writing. What is pressed is told.

import { lifeOf } from '../lifetime.js';
import { players } from '../player/player.js';
import { Sound } from '../player/sound.js';
import { addStyle } from '../style.js';
import { showMood, takeMood } from './line_mood.js';
import { elementOf, patch } from './patch.js';

const KEPT = 'timbre-script'; // where the browser remembers which script it had open
const MINE = 'timbre-scripts';
const DRAFT = 'timbre-script-draft';
const ALOUD = 'timbre-script-aloud'; // whether what is rendered is played, as it was ticked last
const FOLLOW = 200; // ms between looks at what is heard
const TYPED = 250; // ms after the last letter of a search
const EDGE = 60; // px from the window's edge where a dragged line scrolls it

// Each tab has its own; a new one begins with the latest.
function keep(name, value) {
  for (const store of [sessionStorage, localStorage]) store.setItem(name, value);
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
  // tell: { act(detail), play(detail) }
  constructor(root, tell) {
    this.root = root;
    this.tell = tell;
    this.pieces = new Map(); // key -> { html, drawn, node }: `drawn` is the node as the server sent it
    this.value = { number: '', items: [], heard: {}, answered: [] };
    this.held = null; // what the pointer is down on
    this.comparing = new Set(); // lines whose takes are shown
    this.drag = null; // { article, target, below } while a line is dragged
    this.search = 0; // timer
    root.addEventListener('pointerdown', ({ target }) => (this.held = target));
    const life = lifeOf(root);
    for (const over of ['pointerup', 'pointercancel']) {
      window.addEventListener(over, () => this.letGo(), { signal: life });
    }
    const timer = setInterval(() => this.look(), FOLLOW);
    life.addEventListener('abort', () => {
      clearInterval(timer);
      clearTimeout(this.search);
      this.endDrag();
    });
    root.addEventListener('click', (event) => this.click(event));
    root.addEventListener('change', (event) => this.change(event));
    root.addEventListener('submit', (event) => this.submit(event));
    root.addEventListener('reset', (event) => this.close(event.target));
    root.addEventListener('keydown', (event) => this.key(event));
    root.addEventListener('input', (event) => this.searched(event));
    root.addEventListener('pointerdown', (event) => this.grab(event));
    root.addEventListener('pointermove', (event) => this.dragTo(event));
    root.addEventListener('pointerup', () => this.drop());
    root.addEventListener('pointercancel', () => this.endDrag());
  }

  // value: { number, items: [[key, html], …], heard: { take: [[sample, line], …] }, answered: [press, …] }
  show(value) {
    const [line, selector] = this.focused();
    if (value.number !== this.value.number) this.forgetView();
    this.value = value;
    this.closeSaved();
    const { number, items } = value;
    if (items.length) this.remember(number);
    const wanted = new Set(items.map(([key]) => key));
    for (const [key, { node }] of this.pieces) {
      if (wanted.has(key)) continue;
      node.remove();
      this.pieces.delete(key);
    }
    items.forEach(([key, html], place) => this.put(key, html, place));
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

  // Another script is shown.
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
    const [number, mine] = [recall(KEPT), localStorage.getItem(MINE)].map((each) => each ?? '');
    return { number, mine, draft: JSON.parse(recall(DRAFT) ?? 'null'), aloud: recall(ALOUD) !== 'false' };
  }

  // What is typed is kept until it was read, so that a reload does not lose it.
  typed(target) {
    if (!target.closest?.('#script-text')) return;
    const draft = { number: this.value.number, seen: field('seen'), text: target.value };
    keep(DRAFT, JSON.stringify(draft));
  }

  ticked(target) {
    if (target.closest?.('.timbre-aloud')) keep(ALOUD, String(target.checked));
  }

  forgetRead() {
    const typed = field('text') !== field('seen');
    if (this.wasTyped && !typed) keep(DRAFT, 'null');
    this.wasTyped = typed;
  }

  remember(number) {
    const others = this.last().mine.split(' ').filter((each) => each && each !== number);
    keep(KEPT, number);
    localStorage.setItem(MINE, [...others, number].slice(-100).join(' ').trim());
  }

  look() {
    this.follow();
    if (this.root.classList.contains('lines')) this.forgetRead();
  }

  // The line that is heard now is marked; one on another page can be found.
  follow() {
    const now = players.map((each) => each.now).find((each) => this.marks(each));
    const played = now?.report?.played ?? -1;
    const line = this.marks(now)?.filter(([sample]) => sample <= played).at(-1)?.[1];
    const before = this.root.querySelector('article.heard');
    let shown = line === undefined;
    for (const node of this.root.querySelectorAll('article')) {
      const heard = node.dataset.line === String(line);
      node.classList.toggle('heard', heard);
      shown ||= heard;
    }
    this.keepInView(before, this.root.querySelector('article.heard'));
    const find = this.root.querySelector('[data-act=find]');
    if (find) Object.assign(find, { hidden: shown }).dataset.line = line ?? '';
  }

  // The line that is heard stays on screen, unless somebody has scrolled away from the one before.
  keepInView(before, heard) {
    if (!before || !heard || heard === before || !isSeen(before) || isSeen(heard)) return;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    heard.scrollIntoView({ block: 'center', behavior: still ? 'auto' : 'smooth' });
  }

  marks(now) {
    return now && !now.over ? this.value.heard[now.id] : undefined;
  }

  // Somebody is writing or pressing here.
  isBusy(node) {
    return Boolean(node?.contains(this.held) || node?.querySelector('form:not([hidden])'));
  }

  // Behind the click, which goes to what is still the pressed button.
  letGo() {
    if (!this.held) return;
    setTimeout(() => {
      this.held = null;
      this.show(this.value);
    });
  }

  focusIn(node) {
    /** @type {any} */
    const focused = document.activeElement;
    const own = node?.contains(focused) ? focused.dataset : {};
    const name = ['act', 'play', 'edit', 'grip', 'takes'].find((each) => each in own);
    return name && (own[name] ? `[data-${name}="${own[name]}"]` : `[data-${name}]`);
  }

  // ---- from the person

  click({ target }) {
    const button = target.closest('button');
    if (!button) return;
    if ('edit' in button.dataset) this.open(button.closest('article'));
    if ('takes' in button.dataset) this.toggleTakes(button.closest('article'));
    if (button.dataset.act === 'find') this.forgetView();
    if (button.dataset.act) this.tell.act({ do: button.dataset.act, ...this.about(button) });
    if (button.dataset.play) this.play(button);
  }

  play(button) {
    Sound.wake(); // a browser starts its sound inside a press only
    this.tell.play({ do: button.dataset.play, ...this.about(button) });
  }

  change({ target }) {
    if (['mood', 'strength'].includes(target.name)) takeMood(target.form);
    if (!target.dataset.act) return;
    this.tell.act({ do: target.dataset.act, value: target.value, ...this.about(target) });
  }

  about(element) {
    const line = element.closest('[data-line]')?.dataset.line;
    const { who, page, take, part } = element.dataset;
    return { line: line && Number(line), who, take, part, page: page && Number(page) };
  }

  searched({ target }) {
    if (target.name === 'text') showMood(target.form);
    if (!('search' in target.dataset)) return;
    clearTimeout(this.search);
    const told = { do: target.dataset.search, value: target.value };
    this.search = setTimeout(() => this.tell.act(told), TYPED);
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

  // ---- a line is dragged by its grip

  grab(event) {
    const grip = event.target.closest('[data-grip]');
    if (!grip || event.button) return;
    grip.setPointerCapture(event.pointerId);
    document.documentElement.style.userSelect = 'none'; // else the lines passed over are selected
    this.drag = { article: grip.closest('article'), target: null, below: false };
  }

  dragTo({ clientY }) {
    if (!this.drag) return;
    const { article } = this.drag;
    article.classList.add('dragged');
    if (clientY < EDGE) window.scrollBy(0, -EDGE / 4);
    if (clientY > window.innerHeight - EDGE) window.scrollBy(0, EDGE / 4);
    const articles = [...this.root.querySelectorAll('article')];
    const boxes = articles.map((each) => each.getBoundingClientRect());
    let place = boxes.findIndex(({ bottom }) => clientY < bottom);
    if (place < 0) place = articles.length - 1;
    const { top, height } = boxes[place];
    this.mark(articles[place], clientY > top + height / 2);
  }

  mark(target, below) {
    const { target: before, article } = this.drag;
    before?.classList.remove('drop-above', 'drop-below');
    Object.assign(this.drag, { target, below });
    if (target !== article) target.classList.add(below ? 'drop-below' : 'drop-above');
  }

  drop() {
    const { article, target, below } = this.drag ?? {};
    this.endDrag();
    if (!target || target === article) return;
    const [line, onto] = [article, target].map((each) => Number(each.dataset.line));
    this.tell.act({ do: 'move', line, target: onto, below });
  }

  endDrag() {
    if (this.drag) document.documentElement.style.userSelect = '';
    this.drag?.article.classList.remove('dragged');
    this.drag?.target?.classList.remove('drop-above', 'drop-below');
    this.drag = null;
  }

  // ---- forms

  open(article) {
    const form = article.querySelector('form');
    form.hidden = false;
    article.classList.add('open');
    showMood(form);
    form.text.focus();
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
      if (!this.value.answered.includes(form.dataset.sent)) continue;
      const focused = form.contains(document.activeElement);
      this.hide(form);
      if (focused) form.closest('article').querySelector('[data-edit]')?.focus();
      const { drawn } = this.pieces.get(`line-${this.about(form).line}`);
      form.replaceWith(drawn.querySelector('form').cloneNode(true)); // without what was written in it
    }
  }

  submit(event) {
    event.preventDefault();
    const form = event.target;
    const [text, who] = [form.text.value, form.who.value];
    const same = text === form.text.defaultValue && form.who.selectedOptions[0].defaultSelected;
    if (same) return this.close(form);
    form.dataset.sent = newId();
    const sent = { do: 'edit', press: form.dataset.sent, text, who, was: form.text.defaultValue };
    this.tell.act({ ...this.about(form), ...sent });
  }

  key(event) {
    if ('grip' in event.target.dataset) return this.keyOnGrip(event);
    const form = event.target.closest('form');
    if (!form || event.isComposing) return;
    if (event.key === 'Escape') {
      event.stopPropagation();
      form.reset();
    } else if (event.key === 'Enter' && event.target.name === 'text' && !event.shiftKey) {
      event.preventDefault();
      event.stopPropagation();
      form.requestSubmit();
    }
  }

  keyOnGrip(event) {
    if (event.key === 'Escape' && this.drag) this.endDrag();
    const step = { ArrowUp: 'up', ArrowDown: 'down' }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.tell.act({ do: step, ...this.about(event.target) });
  }
}

// Called by the component of Gradio when it appears (studio/ui/tabs/script/tab.py). The board of lines
// also keeps what is typed, and tells when the page is looked at again.
export function mount({ element, trigger, props, watch }, { lines }) {
  addStyle(new URL('./script.css', import.meta.url));
  const root = element.querySelector('.timbre-board');
  const board = new Board(root, {
    act: (detail) => trigger('act', detail),
    play: (detail) => trigger('play', detail),
  });
  board.show(props.value);
  watch('value', () => board.show(props.value));
  if (!lines) return;
  const signal = lifeOf(root);
  document.addEventListener('input', ({ target }) => board.typed(target), { signal });
  document.addEventListener('change', ({ target }) => board.ticked(target), { signal });
  const back = () => document.hidden || trigger('back', {});
  document.addEventListener('visibilitychange', back, { signal });
  if (!props.value.items.length) trigger('arrive', board.last());
}
