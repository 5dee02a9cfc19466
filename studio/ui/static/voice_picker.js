// Cards of voices, of which one is chosen: radio buttons with arrow keys. A card that is pointed at, or
// focused by a key, is heard a moment later, unless something plays or the switch below is off.

import { lifeOf } from './lifetime.js';
import { players } from './player/player.js';
import { kept, Sound, VOLUME } from './player/sound.js';

const POINTED = 350; // ms until a voice that is pointed at is heard
const FADE = 0.06; // seconds in which it ends when the pointer leaves
const MOST = 200; // samples that the page keeps
const ALOUD = 'timbre-aloud';
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

const pickers = new Map(); // id of the component -> VoicePicker

class VoicePicker {
  // sample: of a voice, FLAC in base64 or null; field: the id of what holds the chosen voice
  constructor(root, sample, field) {
    this.root = root;
    this.sample = sample;
    this.field = field;
    this.waiting = undefined; // a timer
    this.source = null; // what is heard
    this.gain = null;
    this.samples = new Map(); // voice -> promise of an AudioBuffer or null
    this.heard = null; // the button whose voice is heard or about to be
    this.wish = null; // to hear it, this time
    this.ended = false; // it was heard to its end, or could not be heard
    const listen = (kind, work) => root.addEventListener(kind, work);
    listen('click', (event) => this.press(event));
    listen('keydown', (event) => this.step(event));
    listen('pointerover', (event) => event.pointerType === 'mouse' && this.point(cardOf(event.target)));
    listen('pointerleave', () => this.point(null));
    listen('focusin', ({ target }) => this.point(target.matches(':focus-visible') ? cardOf(target) : null));
    listen('focusout', () => this.point(null));
    listen('change', ({ target }) => target.closest('.aloud') && this.switch(target.checked));
    this.arrive();
    const life = lifeOf(root);
    document.addEventListener('timbre-begun', () => this.source && this.silence(), { signal: life });
    life.addEventListener('abort', () => this.silence());
  }

  get cards() {
    return [...this.root.querySelectorAll('[role=radio]')];
  }

  get input() {
    return document.querySelector(`#${this.field} :is(textarea, input)`);
  }

  // The server has listed others. Whoever is pointed at, or focused, and still there, is heard on.
  arrive() {
    const { heard } = this;
    if (!heard?.isConnected) this.silence();
    const box = this.root.querySelector('.aloud input');
    if (box) box.checked = isAloud();
    if (this.input) this.mark(this.input.value);
    if (heard?.isConnected === false) this.again(heard.dataset.key);
  }

  again(key) {
    const card = this.cards.find((each) => each.dataset.key === key);
    if (!card) return;
    if (document.activeElement === document.body) card.focus(); // which it lost with the old card
    this.point(card);
  }

  // ---- which is chosen

  choose(card) {
    this.mark(card.dataset.key);
    if (this.input.value === card.dataset.key) return;
    this.input.value = card.dataset.key;
    this.input.dispatchEvent(new Event('input', { bubbles: true }));
  }

  mark(key) {
    const { cards } = this;
    const chosen = cards.find(({ dataset }) => dataset.key === key);
    for (const card of cards) {
      card.setAttribute('aria-checked', String(card === chosen));
      card.tabIndex = card === (chosen ?? cards[0]) ? 0 : -1;
    }
    if (chosen && chosen !== document.activeElement) show(chosen);
  }

  press({ target }) {
    const card = cardOf(target);
    if (!card) return;
    Sound.wake();
    this.choose(card);
    if (this.ended) this.heard = null; // it is wanted again
    this.point(card);
  }

  step(event) {
    const card = cardOf(event.target);
    const cards = this.cards;
    if (!card || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = { Home: 0, End: cards.length - 1 }[event.key];
    const next = cards.at(to ?? (cards.indexOf(card) + (STEPS[event.key] ?? 0)) % cards.length);
    if (to === undefined && !STEPS[event.key]) return;
    event.preventDefault();
    this.choose(next);
    next.focus();
  }

  // ---- which is heard

  switch(aloud) {
    try {
      localStorage.setItem(ALOUD, String(aloud));
    } catch {
      // not kept
    }
    if (!aloud) this.silence();
  }

  point(card) {
    if (card === this.heard) return;
    this.silence();
    if (!card || !this.root.querySelector('.aloud input')?.checked) return;
    this.heard = card;
    this.waiting = setTimeout(() => this.play(card), POINTED);
  }

  async play(card) {
    const wish = (this.wish = {}); // the same card may be left and pointed at again meanwhile
    if (isBusy()) return this.end(card);
    card.classList.add('heard');
    const buffer = await this.fetched(card.dataset.key);
    if (wish !== this.wish) return undefined;
    if (!buffer || Sound.silent || isBusy()) return this.end(card);
    return this.start(card, buffer);
  }

  start(card, buffer) {
    const { context } = Sound;
    this.gain = new GainNode(context, { gain: kept(VOLUME, 0, 1) });
    this.source = new AudioBufferSourceNode(context, { buffer });
    this.source.connect(this.gain).connect(context.destination);
    this.source.onended = ({ target }) => this.source === target && this.end(card);
    this.source.start();
    this.root.dataset.played = card.dataset.key;
  }

  end(card) {
    card.classList.remove('heard');
    this.ended = true;
  }

  fetched(key) {
    if (!this.samples.has(key)) {
      const request = this.sample(key).then((sound) => sound && decoded(sound)).catch(() => null);
      this.samples.set(key, request);
      request.then((buffer) => buffer || this.samples.delete(key)); // so that it is requested again
      if (this.samples.size > MOST) this.samples.delete(this.samples.keys().next().value);
    }
    return this.samples.get(key);
  }

  silence() {
    clearTimeout(this.waiting);
    this.heard?.classList.remove('heard');
    this.heard = null;
    this.wish = null;
    this.ended = false;
    if (!this.source) return;
    const end = Sound.context.currentTime + FADE;
    this.gain.gain.setTargetAtTime(0, Sound.context.currentTime, FADE / 4);
    this.source.stop(end);
    this.source = null;
  }
}

const cardOf = (target) => target.closest?.('[role=radio]') ?? null;

// Whether something is heard that a sample would talk over.
const isBusy = () => players.some(({ now, active }) => now && (!now.over || active) && !now.report?.paused);

function isAloud() {
  try {
    return localStorage.getItem(ALOUD) !== 'false';
  } catch {
    return true;
  }
}

async function decoded(sound) {
  const bytes = Uint8Array.from(atob(sound), (letter) => letter.charCodeAt(0));
  return Sound.context.decodeAudioData(bytes.buffer);
}

// Scrolls a card into view within its list: the page stays where it is.
function show(card) {
  const list = card.parentElement;
  const [own, there] = [card.getBoundingClientRect(), list.getBoundingClientRect()];
  if (own.top < there.top || own.bottom > there.bottom) list.scrollTop += own.top - there.top;
  if (own.left < there.left || own.right > there.right) list.scrollLeft += own.left - there.left;
}

// Another voice was chosen, by whatever: an event of the field (studio/ui/voice_picker.py).
export function markChosen(id, key) {
  pickers.get(id)?.mark(key);
  return [];
}

// Called by the component of Gradio when it appears.
export function mount({ element, server, watch }, { id, field }) {
  Sound.open();
  const picker = new VoicePicker(element, (voice) => server.sample(voice), field);
  pickers.set(id, picker);
  watch('value', () => picker.arrive());
}
