// The blend pad: voices at the corners, a handle between them. Mouse, touch and arrow keys.
// Weights and corners follow studio/ui/blend_pad/pad_weights.py. Reports where the handle was released.

import { drawnAnew } from '../canvas.js';
import { whenGone } from '../lifetime.js';
import { Sound } from '../player/sound.js';
import { addStyle } from '../style.js';
import { percents } from './percents.js';

const RADIUS = 13;
const EDGE = 22; // px between the frame and the outermost position, so that the handle is never clipped
const STEP = 0.05; // of the pad's width, per arrow key
const SETTLE = 250; // ms after the last key, then it counts as released

class Pad {
  // report: called with { x, y } on release
  constructor(root, options, report) {
    this.root = root;
    this.corners = options.corners;
    this.report = report;
    this.canvas = root.querySelector('canvas');
    this.labels = [...root.querySelectorAll('.corner')];
    this.names = [];
    this.at = { x: 0.5, y: 0.5 };
    this.held = false;
    this.listen();
    drawnAnew(root, this.canvas, () => this.draw());
    whenGone(root, () => clearTimeout(this.settling));
  }

  // value: { names, x, y }, the component's
  show({ names, x, y }) {
    this.names = names;
    if (!this.held) this.at = { x, y };
    this.draw();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener('pointerdown', (event) => this.grab(event));
    canvas.addEventListener('pointermove', (event) => this.held && this.follow(event));
    for (const end of ['pointerup', 'pointercancel']) {
      canvas.addEventListener(end, () => this.held && this.release());
    }
    canvas.addEventListener('keydown', (event) => this.key(event));
  }

  grab(event) {
    Sound.wake(); // a browser starts its sound inside a touch only
    this.canvas.setPointerCapture(event.pointerId);
    this.held = true;
    this.follow(event);
  }

  follow(event) {
    const box = this.canvas.getBoundingClientRect();
    this.move(
      (event.clientX - box.left - EDGE) / (box.width - 2 * EDGE),
      (event.clientY - box.top - EDGE) / (box.height - 2 * EDGE),
    );
  }

  release() {
    this.held = false;
    this.report({ ...this.at });
  }

  key(event) {
    const [right, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
    if (right === undefined) return;
    event.preventDefault();
    Sound.wake();
    this.move(this.at.x + right * STEP, this.at.y + down * STEP);
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.release(), SETTLE);
  }

  move(x, y) {
    const inside = (value) => Math.min(1, Math.max(0, Math.round(value * 1000) / 1000));
    this.at = { x: inside(x), y: this.names.length < 3 ? 0.5 : inside(y) };
    this.draw();
  }

  weights() {
    const { x, y } = this.at;
    const areas = [(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y];
    const weights = this.names.map(() => 0);
    this.corners[this.names.length]?.forEach((voice, corner) => (weights[voice] += areas[corner]));
    return weights;
  }

  // ---- drawing

  draw() {
    const weights = this.weights();
    this.label(weights);
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width) return; // in a tab that is not shown
    const scale = window.devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [width * scale, height * scale];
    const pen = this.canvas.getContext('2d');
    pen.scale(scale, scale);
    const style = getComputedStyle(this.root);
    const ink = style.getPropertyValue('--pad-ink').trim();
    const line = style.getPropertyValue('--pad-line').trim();
    this.grid(pen, width, height, line);
    this.lines(pen, width, height, weights, ink);
    this.handle(pen, this.place(this.at, width, height), ink);
  }

  /** @returns {[number, number]} */
  place({ x, y }, width, height) {
    return [EDGE + x * (width - 2 * EDGE), EDGE + y * (height - 2 * EDGE)];
  }

  grid(pen, width, height, line) {
    pen.fillStyle = line;
    for (let step = 0; step <= 100; step++) {
      const point = this.place({ x: (step % 10) / 9, y: Math.floor(step / 10) / 9 }, width, height);
      if (step < 100) pen.fillRect(point[0] - 1, point[1] - 1, 2, 2);
    }
  }

  // A line from the handle to each voice, as wide as its weight.
  lines(pen, width, height, weights, ink) {
    const handle = this.place(this.at, width, height);
    pen.strokeStyle = ink;
    pen.lineCap = 'round';
    weights.forEach((weight, voice) => {
      const anchor = this.anchor(voice);
      pen.globalAlpha = 0.12 + 0.5 * weight;
      pen.lineWidth = 1 + 7 * weight;
      pen.beginPath();
      pen.moveTo(...this.place(anchor, width, height));
      pen.lineTo(...handle);
      pen.stroke();
    });
    pen.globalAlpha = 1;
  }

  // Where a voice is: the middle of its corners.
  anchor(voice) {
    const here = this.corners[this.names.length].flatMap((each, corner) => (each === voice ? [corner] : []));
    const mean = (of) => here.reduce((sum, corner) => sum + of(corner), 0) / here.length;
    return { x: mean((corner) => corner % 2), y: mean((corner) => corner >> 1) };
  }

  handle(pen, [x, y], ink) {
    pen.fillStyle = ink;
    pen.beginPath();
    pen.arc(x, y, RADIUS, 0, 2 * Math.PI);
    pen.fill();
    pen.fillStyle = '#fff';
    pen.beginPath();
    pen.arc(x, y, RADIUS / 3, 0, 2 * Math.PI);
    pen.fill();
  }

  label(weights) {
    const shares = percents(weights);
    const texts = this.names.map((name, voice) => `${name} ${shares[voice]} %`);
    this.labels.forEach((label, voice) => {
      label.textContent = texts[voice] ?? '';
      const anchor = voice < this.names.length ? this.anchor(voice) : { x: 0, y: 0 };
      label.dataset.across = ['left', 'middle', 'right'][2 * anchor.x];
      label.dataset.down = ['top', 'middle', 'bottom'][2 * anchor.y];
    });
    this.canvas.setAttribute('aria-valuetext', texts.join(', '));
    this.canvas.setAttribute('aria-valuenow', Math.round(100 * this.at.x));
  }
}

// Called by the component of Gradio when it appears (studio/ui/blend_pad/blend_pad.py).
export function mount({ element, trigger, props, watch }, options) {
  addStyle(new URL('./pad.css', import.meta.url));
  const pad = new Pad(element.querySelector('.timbre-pad'), options, (at) => trigger('release', at));
  if (props.value) pad.show(props.value);
  watch('value', () => props.value && pad.show(props.value));
}
