// The page's player bar: what speaks, its state in words, the waveform with the position, figures, and
// the buttons. One for all players; it shows the one that began last. Knows words and elements; sound
// and transport are the caller's.

import { Sound } from './sound.js';
import { Wave } from './wave.js';
import { WORDS } from './words.js';

const RATES = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2];
const STEP = 2 * 24000; // samples of an arrow key on the waveform
const icon = (name, path) => `<svg class="${name}" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;

const SHAPE = `
  <button type="button" class="pause" disabled>
    ${icon('is-play', 'M8 5v14l11-7z')}${icon('is-pause', 'M6 5h4v14H6zM14 5h4v14h-4z')}
  </button>
  <div class="said">
    <p><strong class="voice"></strong> <span class="state" role="status" aria-live="polite"></span></p>
    <p class="text"></p>
    <button type="button" class="wake" hidden></button>
    <button type="button" class="retry" hidden></button>
  </div>
  <div class="track">
    <canvas class="wave" role="slider" tabindex="0" aria-valuemin="0"></canvas>
    <div class="facts">
      <span class="time">0:00 / 0:00</span>
      <dl class="figures">
        <div><dt data-word="lead"></dt><dd data-figure="lead">–</dd></div>
        <div><dt data-word="first"></dt><dd data-figure="first">–</dd></div>
        <div><dt data-word="speed"></dt><dd data-figure="speed">–</dd></div>
      </dl>
    </div>
  </div>
  <div class="controls">
    <select class="rate">${RATES.map((rate) => `<option value="${rate}">${rate}×</option>`).join('')}</select>
    <input class="volume" type="range" min="0" max="1" step="0.05" value="1">
    <a class="download" download aria-disabled="true">${icon('', 'M11 4h2v8h3l-4 5-4-5h3zM5 18h14v2H5z')}</a>
    <button type="button" class="stop" disabled>${icon('', 'M6 6h12v12H6z')}</button>
  </div>`;

function wordsForBrowser() {
  const tongue = (navigator.language || 'en').toLowerCase().split('-')[0];
  const words = WORDS[tongue] ?? WORDS.en;
  return (key, values = {}) =>
    words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

export function clock(samples) {
  const seconds = Math.floor(samples / 24000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

export class Bar {
  // set: { volume(level), rate(rate) }, called when a person moves the controls
  constructor(set) {
    this.set = set;
    this.word = wordsForBrowser();
    this.player = null; // the one that is shown
    this.root = document.createElement('section');
    this.root.className = 'timbre-player';
    this.root.hidden = true;
    this.root.innerHTML = SHAPE;
    this.part = (name) => this.root.querySelector(`.${name}`);
    this.wave = new Wave(this.part('wave'));
    this.marker = document.head.appendChild(document.createElement('style'));
    this.label();
    this.listen();
    document.body.append(this.root);
    // The page ends above the bar, so that it covers nothing.
    new ResizeObserver(() => {
      document.documentElement.style.setProperty('--timbre-bar', `${this.root.offsetHeight}px`);
    }).observe(this.root);
  }

  label() {
    const named = { pause: 'pause', stop: 'stop', wave: 'place', rate: 'rate', volume: 'volume', download: 'download' };
    for (const [part, key] of Object.entries(named)) {
      this.part(part).setAttribute('aria-label', this.word(key));
      if (part !== 'wave') this.part(part).title = this.word(key);
    }
    this.root.setAttribute('aria-label', this.word('player'));
    for (const term of this.root.querySelectorAll('[data-word]')) {
      term.textContent = this.word(term.dataset.word);
    }
    for (const part of ['wake', 'retry']) this.part(part).textContent = this.word(part);
  }

  listen() {
    const withPlayer = (does) => (event) => this.player && does(this.player, event);
    this.part('stop').onclick = withPlayer((player) => player.stop());
    this.part('pause').onclick = withPlayer((player) => player.toggle());
    this.part('wake').onclick = () => Sound.wake();
    this.part('retry').onclick = withPlayer((player) => player.retry());
    this.part('download').onclick = withPlayer((player, event) => player.download(event));
    this.part('volume').oninput = ({ target }) => this.set.volume(Number(target.value));
    this.part('rate').onchange = ({ target }) => this.set.rate(Number(target.value));
    this.part('wave').onpointerdown = withPlayer((player, event) => player.seek(this.wave.sampleAt(event.offsetX)));
    this.part('wave').onkeydown = withPlayer((player, event) => this.step(player, event));
  }

  step(player, event) {
    const { played, received } = player;
    const to = { ArrowLeft: played - STEP, ArrowRight: played + STEP, Home: 0, End: received }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    player.seek(to);
  }

  // Shows another take: its voice, how its text begins; total: its samples, where known.
  begin(player, { voice = '', text = '', total = 0 }) {
    this.player = player;
    this.about({ voice, text });
    this.wave.clear(total);
    this.paused(false);
    this.time(0, total);
    for (const name of ['first', 'speed', 'lead']) this.figure(name, null, null);
    this.root.hidden = false;
  }

  // Shows who speaks, and how the text begins.
  about({ voice, text }) {
    for (const [part, words] of Object.entries({ voice, text })) {
      const shown = this.part(part);
      if (shown.textContent !== words) shown.textContent = shown.title = words;
    }
  }

  // key: one of the words; message: a sentence for the person instead of it
  show(key, values = {}, message = '') {
    const words = message || this.word(key, values);
    const state = this.part('state');
    if (state.textContent !== words) state.textContent = words; // read aloud once
    this.part('wake').hidden = key !== 'blocked';
    this.part('retry').hidden = key !== 'lost';
    this.root.dataset.state = key;
  }

  // What can be done now; `link`: where to load the take, null: nowhere, '': it is made in the page.
  allow({ stop, pause, link }) {
    this.part('stop').disabled = !stop;
    this.part('pause').disabled = !pause;
    const load = this.part('download');
    load.setAttribute('aria-disabled', String(link === null));
    if (link) load.href = link;
    else if (link === '') load.href = '#';
    else load.removeAttribute('href');
  }

  // Also marks the take's own buttons, wherever the page lists it.
  paused(yes, take = '') {
    const { dataset } = this.root;
    const key = `${yes} ${take}`;
    if (dataset.paused === String(yes) && this.marked === key) return;
    dataset.paused = yes;
    this.marked = key;
    const button = this.part('pause');
    button.title = this.word(yes ? 'resume' : 'pause');
    button.setAttribute('aria-label', button.title);
    const marked = `[data-do=hear][data-take="${take}"]`;
    this.marker.textContent = take && !yes ? `${marked} .is-play { display: none !important } ${marked} .is-pause { display: block !important }` : '';
  }

  time(played, total) {
    const times = `${clock(played)} / ${clock(total)}`;
    const slider = this.part('wave');
    if (slider.getAttribute('aria-valuetext') === times) return;
    this.part('time').textContent = times;
    slider.setAttribute('aria-valuemax', String(Math.round(total / 24000)));
    slider.setAttribute('aria-valuenow', String(Math.round(played / 24000)));
    slider.setAttribute('aria-valuetext', times);
  }

  showVolume(level) {
    this.part('volume').value = level;
  }

  showRate(rate) {
    this.part('rate').value = rate;
  }

  figure(name, unit, value) {
    const shown = this.root.querySelector(`[data-figure=${name}]`);
    shown.textContent = value === null ? '–' : this.word(unit, { value });
  }
}
