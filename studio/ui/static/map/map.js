// The map of voices: dots that can be pointed at, a cross that is dragged between them, moods as arrows
// that can be pulled, and a list beside it. Tells where the cross was let go and what is pointed at.

import { drawnAnew } from '../canvas.js';
import { whenGone } from '../lifetime.js';
import { Sound } from '../player/sound.js';
import { keepRows } from '../rows.js';
import { addStyle } from '../style.js';
import { formula, nearest, sharesAt, spread, told } from './nearest.js';
import { paint, paintDots } from './painting.js';

const EDGE = 28; // px between the frame and the outermost voice
const [SIDE, MOST_SIDE] = [0.2, 96]; // of the width, and px: there, room for arrows and their names
const [TOUCH, NARROW] = [12, 5]; // px around a dot that are the dot; among many voices
const MANY = 500;
const STEP = 0.02; // of the map's width, per arrow key
const SETTLE = 250; // ms after the last key, then the cross counts as let go
const POINTED = 250; // ms until a voice that is pointed at is heard
const NEAR_ARROW = 36; // px from the cross to an arrow's knob at strength 0
const PULL = 44; // px more at strength 1
const LISTED = 200; // voices in the list; others are found by searching
const STRONGEST = 1.5;
const KNOB = 11; // px around a knob that are the knob

class VoiceMap {
  // tell: { release(detail), hear(detail) }, both with a formula
  constructor(root, tell) {
    this.root = Object.assign(root, { voiceMap: this });
    this.tell = tell;
    this.find = (selector) => root.querySelector(selector);
    this.canvas = this.find('canvas');
    this.dots = document.createElement('canvas'); // painted when they change, copied in each frame
    [this.spots, this.moods] = [[], []];
    this.at = null; // the cross, in the map's units
    this.pointed = -1; // the voice under the pointer, or focused in the list
    this.held = null; // 'cross', or the mood whose arrow is pulled
    this.listen();
    drawnAnew(root, this.canvas, () => this.lay());
    whenGone(root, () => {
      clearTimeout(this.settling);
      clearTimeout(this.hovering);
    });
  }

  // value: { spots: [{ key, name, written, colour, x, y }, …], moods: [{ name, x, y }, …] }
  show({ spots, moods }) {
    const doses = new Map(this.moods.map(({ name, dose }) => [name, dose]));
    this.spots = spots;
    const turns = spread(moods.map(turnOf));
    this.moods = moods.map((mood, place) => ({ ...mood, dose: doses.get(mood.name) ?? 0, turn: turns[place] }));
    if (!this.at && spots.length) this.at = { x: spots[0].x, y: spots[0].y };
    this.pointed = -1;
    this.find('.empty').hidden = spots.length > 0;
    this.list();
    this.lay();
  }

  // ---- where things are, in px

  // The map's units fill the frame, the same in both directions.
  lay() {
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width) return; // in a tab that is not shown
    const [xs, ys] = [this.spots.map(({ x }) => x), this.spots.map(({ y }) => y)];
    const [left, right, top, bottom] = this.spots.length ? [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)] : [0, 0, 0, 0];
    const scale = Math.min((width - 2 * Math.min(MOST_SIDE, SIDE * width)) / (right - left || 1e-9), (height - 2 * EDGE) / (bottom - top || 1e-9));
    this.scale = scale < 1e8 ? scale : 1; // all voices in one place
    this.middle = { x: (left + right) / 2, y: (top + bottom) / 2 };
    this.size = { width, height };
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.dots]) [canvas.width, canvas.height] = [width * ratio, height * ratio];
    this.style = this.styled(); // asked for once: it would be worked out anew in each frame
    this.names = paintDots(this.dots, this.spots.map((spot) => ({ ...spot, ...this.place(spot) })), ratio, this.style);
    this.draw();
  }

  place({ x, y }) {
    const { width, height } = this.size;
    return { x: width / 2 + (x - this.middle.x) * this.scale, y: height / 2 + (y - this.middle.y) * this.scale };
  }

  unplace({ x, y }) {
    const { width, height } = this.size;
    return { x: this.middle.x + (x - width / 2) / this.scale, y: this.middle.y + (y - height / 2) / this.scale };
  }

  knob({ turn, dose }) {
    const cross = this.place(this.at);
    const far = NEAR_ARROW + PULL * dose;
    const [x, y] = [cross.x + far * Math.cos(turn), cross.y + far * Math.sin(turn)];
    const [right, bottom] = [this.size.width - KNOB, this.size.height - KNOB];
    return { x: Math.min(right, Math.max(KNOB, x)), y: Math.min(bottom, Math.max(KNOB, y)) };
  }

  // How far along a mood's arrow a place is, in px from the cross.
  along(at, { turn }) {
    const cross = this.place(this.at);
    return (at.x - cross.x) * Math.cos(turn) + (at.y - cross.y) * Math.sin(turn);
  }

  styled() {
    const style = getComputedStyle(this.root);
    const [ink, text, paper] = ['--map-ink', '--map-text', '--map-paper'].map((name) => style.getPropertyValue(name).trim());
    return { ink, text, paper, font: style.fontFamily };
  }

  // ---- what is there

  get shares() {
    return this.at ? sharesAt(this.at, this.spots, this.touch / this.scale) : [];
  }

  get touch() {
    return this.spots.length > MANY ? NARROW : TOUCH;
  }

  get doses() {
    return this.moods.map(({ name, dose }) => [name, dose]);
  }

  // The formula of these shares; of one voice as it is: its `name`, 'written' or 'key'.
  formula(shares, name) {
    const alone = shares.length === 1 && !this.moods.some(({ dose }) => dose);
    return alone ? this.spots[shares[0][0]][name] : formula(shares, this.spots, this.doses);
  }

  // ---- pointer and keys

  listen() {
    const { canvas } = this;
    canvas.addEventListener('pointerdown', (event) => this.grab(event));
    canvas.addEventListener('pointermove', (event) => this.follow(event));
    canvas.addEventListener('pointerleave', () => this.point(-1));
    canvas.addEventListener('pointerup', () => this.release());
    canvas.addEventListener('pointercancel', () => this.release());
    canvas.addEventListener('keydown', (event) => this.key(event));
    this.find('input[type=search]').addEventListener('input', () => this.list());
    const list = this.find('ul');
    list.addEventListener('focusin', ({ target }) => this.point(Number(target.dataset.spot)));
    list.addEventListener('focusout', () => this.point(-1));
    list.addEventListener('click', ({ target }) => target.closest('button') && this.choose(Number(target.closest('button').dataset.spot)));
    keepRows(list);
  }

  pointer(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  grab(event) {
    if (!this.spots.length || event.button) return;
    Sound.wake(); // a browser starts its sound inside a touch only
    this.canvas.setPointerCapture(event.pointerId);
    const at = this.pointer(event);
    const far = (mood) => Math.hypot(this.knob(mood).x - at.x, this.knob(mood).y - at.y);
    const [mood] = [...this.moods].sort((a, b) => far(a) - far(b));
    this.held = mood && far(mood) <= KNOB ? mood : 'cross';
    if (this.held === mood) this.slack = this.along(at, mood) - NEAR_ARROW - PULL * mood.dose; // a knob at the frame is nearer
    this.point(-1);
    this.follow(event);
  }

  follow(event) {
    const at = this.pointer(event);
    if (this.held === 'cross') this.move(this.unplace(at));
    else if (this.held) this.pull(at);
    else this.point(this.spotAt(at));
  }

  spotAt(at) {
    if (!this.spots.length) return -1;
    const [place, far] = nearest(this.unplace(at), this.spots);
    return far * this.scale <= this.touch ? place : -1;
  }

  // Moves a knob along its arrow alone.
  pull(at) {
    const far = this.along(at, this.held) - this.slack;
    const dose = Math.min(STRONGEST, Math.max(0, (far - NEAR_ARROW) / PULL));
    this.held.dose = Math.round(20 * dose) / 20;
    this.draw();
  }

  move(at) {
    const { width, height } = this.size;
    const px = this.place(at);
    const inside = { x: Math.min(width, Math.max(0, px.x)), y: Math.min(height, Math.max(0, px.y)) };
    this.at = this.unplace(inside);
    const spot = this.spotAt(inside);
    if (spot >= 0 && this.held) this.at = { x: this.spots[spot].x, y: this.spots[spot].y };
    this.draw();
  }

  release() {
    if (!this.held) return;
    this.held = null;
    this.report();
  }

  report() {
    this.tell.release({ recipe: this.formula(this.shares, 'written') });
  }

  choose(place) {
    Sound.wake();
    clearTimeout(this.hovering); // else it would be heard twice
    this.at = { x: this.spots[place].x, y: this.spots[place].y };
    this.draw();
    this.report();
  }

  point(place) {
    if (place === this.pointed || Number.isNaN(place)) return;
    this.pointed = place;
    clearTimeout(this.hovering);
    if (place >= 0 && this.find('.aloud input').checked) {
      this.hovering = setTimeout(() => this.tell.hear({ recipe: this.spots[place].written }), POINTED);
    }
    this.draw();
  }

  key(event) {
    if (!this.at) return;
    const [right, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
    if (right === undefined && event.key !== 'Enter') return;
    event.preventDefault();
    Sound.wake();
    clearTimeout(this.settling);
    if (event.key === 'Enter') return this.report();
    const far = (STEP * this.size.width * (event.shiftKey ? 4 : 1)) / this.scale;
    this.move({ x: this.at.x + right * far, y: this.at.y + down * far });
    this.settling = setTimeout(() => this.report(), SETTLE);
  }

  // ---- the list

  // The voices that are searched for, as far as they are listed; how many more there are.
  list() {
    const wanted = this.find('input[type=search]').value.trim().toLowerCase();
    const places = [...this.spots.keys()].filter((place) => this.spots[place].name.toLowerCase().includes(wanted));
    const items = places.slice(0, LISTED).map((place) => {
      const button = Object.assign(document.createElement('button'), { type: 'button', textContent: this.spots[place].name });
      button.dataset.spot = String(place);
      const item = document.createElement('li');
      item.append(button);
      return item;
    });
    this.find('ul').replaceChildren(...items);
    this.find('.more').textContent = places.length > LISTED ? `+ ${places.length - LISTED}` : '';
  }

  // ---- drawing, once a frame

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.size) this.paint();
    });
  }

  paint() {
    const { shares } = this;
    this.describe(shares);
    paint(this.canvas, this.dots, this.style, {
      cross: this.at && this.place(this.at),
      lines: shares.map(([place, share]) => ({ ...this.place(this.spots[place]), share })),
      arrows: this.at ? this.moods.map((mood) => ({ ...mood, ...this.knob(mood) })) : [],
      names: this.names,
      pointed: this.pointed >= 0 ? { ...this.spots[this.pointed], ...this.place(this.spots[this.pointed]) } : null,
    });
  }

  describe(shares) {
    const text = told(shares, this.spots, this.doses);
    if (text === this.text) return;
    this.text = text;
    this.find('.there').textContent = text;
    this.canvas.setAttribute('aria-valuetext', text);
    this.find('.use').href = `#use-voice=${encodeURIComponent(this.formula(shares, 'key'))}`;
    this.find('.use').hidden = !shares.length;
  }
}

// The direction of a mood's arrow: where it moves voices on the map, or, where it moves them out of
// the map only, a direction of its own.
function turnOf({ x, y }, place, all) {
  return Math.hypot(x, y) > 1e-3 ? Math.atan2(y, x) : (2 * Math.PI * place) / all.length;
}

// Called by the component of Gradio when it appears (studio/ui/voice_map.py).
export function mount({ element, trigger, props, watch }) {
  addStyle(new URL('./map.css', import.meta.url));
  const map = new VoiceMap(element.querySelector('.timbre-map'), {
    release: (detail) => trigger('release', detail),
    hear: (detail) => trigger('hear', detail),
  });
  map.show(props.value);
  watch('value', () => map.show(props.value));
}
