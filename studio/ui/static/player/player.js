// One player: samples from the Feed go to the Speaker and, while this player is the latest, to the
// page's bar. Events for the page: 'take' when a take is complete, 'heard' when playback has ended.

import { whenGone } from '../lifetime.js';
import { addStyle } from '../style.js';
import { Bar, clock } from './bar.js';
import { Feed } from './feed.js';
import { RATE, Sound, Speaker, VOLUME, keep, kept } from './sound.js';

const STOPPED = new Set(['cancelled', 'error', 'refused']);
const KEPT = 'timbre/takes'; // where the server gives kept takes: studio/takes/downloads.py

class Player {
  // page: { ask(id, start), leave(id), tell(event, detail) }
  constructor(root, page) {
    this.page = page;
    this.root = root;
    this.now = null; // the take that is being heard
    this.speaker = new Speaker((report) => (report.given ? this.given(report.given) : this.heard(report)));
    this.feed = new Feed(this, page.ask);
    this.changed = () => this.describe();
    Sound.context.addEventListener('statechange', this.changed);
  }

  take(payload) {
    this.feed.take(payload);
  }

  get shown() {
    return bar.player === this;
  }

  get received() {
    return this.feed.received ?? 0;
  }

  get played() {
    return this.now?.report?.played ?? 0;
  }

  // The id under which the server keeps it.
  get kept() {
    return this.now?.payload.ended?.take ?? '';
  }

  // ---- from the feed

  begin(payload) {
    if (this.now && !this.now.made) this.page.leave(this.now.id);
    for (const other of players) if (other !== this) other.pause(true);
    document.dispatchEvent(new CustomEvent('timbre-begun')); // samples of voices end
    const now = performance.now();
    const asked = now - Sound.touched < 3000 ? Sound.touched : now;
    this.now = { id: payload.id, asked, first: null, report: null, payload, over: false, made: false };
    this.now.parts = new Map(); // sample -> { voice, text } from there on
    this.now.pressed = lastPress; // what would speak it once more
    this.speaker.send({ do: 'begin', take: payload.id });
    this.hold(payload);
    bar.begin(this, payload);
    Sound.wake();
  }

  // A server slower than real time says how much must be there before it is played.
  hold({ hold }) {
    if (hold !== this.now.hold) this.speaker.send({ do: 'hold', seconds: hold ?? 0 });
    this.now.hold = hold;
  }

  audio(samples) {
    if (this.shown) bar.wave.add(samples);
    this.speaker.send({ do: 'push', samples }, [samples.buffer]);
    if (this.shown) this.showTime();
  }

  news(payload) {
    this.now.payload = payload;
    for (const [start, voice, text] of payload.parts ?? []) this.now.parts.set(start, { voice, text });
    this.hold(payload);
    if (payload.speed && this.shown) bar.figure('speed', 'times', payload.speed.toFixed(1));
    if (payload.state === 'done') this.made();
    this.describe();
  }

  whole(total) {
    this.speaker.send({ do: 'finish', total });
    if (total === null) this.now.over = false;
    else if (this.shown) bar.wave.fit();
  }

  made() {
    if (this.now.made) return;
    this.now.made = true;
    const { id, made, ended, first_ms } = this.now.payload;
    this.page.tell('take', { id, samples: made, first_ms, ...ended });
    if (!made) this.over();
  }

  // ---- from the worklet

  heard(report) {
    if (!this.now || report.take !== this.now.id) return;
    this.now.report = report;
    if (this.now.first === null && report.played) this.firstSound();
    if (report.state === 'ended') this.over();
    if (this.shown) this.draw(report);
    this.describe();
  }

  draw(report) {
    bar.wave.heard(report.played);
    this.showPart(report.played);
    if (!this.now.over) bar.figure('lead', 'seconds', (report.lead / 24000).toFixed(1));
    this.showTime();
  }

  showPart(played) {
    const begun = [...this.now.parts.keys()].filter((start) => start <= played);
    if (begun.length) bar.about(this.now.parts.get(Math.max(...begun)));
  }

  showTime() {
    bar.time(this.played, Math.max(this.received, this.now.payload.total ?? 0));
  }

  firstSound() {
    this.now.first = performance.now() - this.now.asked;
    if (this.shown && !this.now.payload.total) bar.figure('first', 'milliseconds', Math.round(this.now.first));
  }

  over() {
    if (this.now.over) return;
    this.now.over = true;
    if (this.shown) bar.figure('lead', null, null);
    const { id, report, first } = this.now;
    const { played = 0, underruns = 0 } = report ?? {};
    this.page.tell('heard', { id, played, underruns, first_ms: first });
  }

  // More of it is to come.
  get speaking() {
    return this.now && !this.now.made && !this.now.stopped && !this.now.payload.ended;
  }

  // The connection is gone: what has come is played, and the rest is fetched once it is back.
  cut() {
    if (!this.feed.goOn()) this.lost();
    this.describe();
  }

  // The server has let the take go: what has come is played to its end.
  lost() {
    this.now.lost = true;
    const { received } = this.feed;
    this.feed.drop();
    if (received) this.speaker.send({ do: 'finish', total: received });
    else this.over();
    this.describe();
  }

  // ---- controls

  stop() {
    if (!this.now) return;
    this.speaker.send({ do: 'stop' });
    if (this.now.over) return; // it was only played again
    this.feed.drop();
    this.now.stopped = true;
    this.page.leave(this.now.id);
    this.page.tell('stop', { id: this.now.id });
    this.over();
    this.describe();
  }

  get active() {
    return ['playing', 'filling'].includes(this.now?.report?.state);
  }

  // Pause, go on, or play it once more.
  toggle() {
    if (this.active || !this.now.over) this.pause(!this.now.report?.paused);
    else if (this.now.report?.first && this.kept) this.refetch();
    else this.seek(0);
  }

  // Its beginning is not here any more.
  refetch() {
    const { payload } = this.now;
    hear({ ...payload, take: this.kept, samples: payload.made });
  }

  pause(yes) {
    if (!this.now || (this.now.over && !this.active)) return;
    this.speaker.send({ do: yes ? 'pause' : 'resume' });
    Sound.wake();
  }

  seek(to) {
    if (!this.now?.report || !this.received) return;
    for (const other of players) if (other !== this) other.pause(true);
    this.speaker.send({ do: 'seek', to: Math.max(0, Math.min(to, this.received)) });
    Sound.wake();
  }

  retry() {
    if (this.now?.again) this.now.again();
    else this.now?.pressed?.click();
  }

  // What the server does not keep is put together from the samples that are here.
  download(event) {
    const { href } = event.currentTarget;
    if (href && !href.endsWith('#')) return;
    event.preventDefault();
    if (href) this.speaker.send({ do: 'give' });
  }

  given(chunks) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(wavFile(chunks));
    const words = `${this.now.payload.text ?? ''} ${this.now.payload.voice ?? ''}`.match(/[\p{L}\p{N}]+/gu);
    link.download = `${words?.join('-').slice(0, 64) ?? 'timbre'}.wav`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  // The component is gone from the page.
  close() {
    if (this.now && !this.now.over) this.stop();
    Sound.context.removeEventListener('statechange', this.changed);
    this.speaker.close();
  }

  // ---- state as text

  describe() {
    if (!this.now || !this.shown) return;
    const { over, payload, report } = this.now;
    const sound = this.received > 0;
    bar.allow({ stop: !over || this.active, pause: !over || sound, link: this.link() });
    bar.paused(Boolean(report?.paused || (over && !this.active)), this.kept);
    bar.show(...this.words(payload));
  }

  link() {
    const { over, payload, report } = this.now;
    const whole = payload.ended && !STOPPED.has(payload.ended.reason);
    if (this.kept && whole) return `${KEPT}/${this.kept}.wav`;
    return (over || payload.ended) && this.received && !report?.first ? '' : null;
  }

  words(payload) {
    const { report, over, stopped, lost, failed } = this.now;
    if (failed) return ['gone'];
    if (over && this.active) return [report.paused ? 'paused' : 'playing'];
    if (stopped) return ['cancelled'];
    if (lost) return ['lost'];
    if (this.feed.broken) return ['cut', { time: clock(this.received) }];
    if (payload.ended && (over || STOPPED.has(payload.ended.reason))) return this.lastWords(payload.ended);
    if (Sound.silent) return ['blocked'];
    if (report?.paused) return ['paused'];
    if (report?.underruns && report.state === 'filling') return ['catching_up'];
    if (payload.hold && report?.state === 'filling') return ['collecting'];
    if (payload.total) return ['playing'];
    if (payload.state !== 'waiting') return ['speaking'];
    return this.place(payload);
  }

  lastWords({ reason, message }) {
    return [reason === 'refused' ? 'error' : reason, {}, message];
  }

  place({ position, wait }) {
    if (position === null) return ['starting'];
    if (position === 0) return ['next'];
    return ['waiting', { position: position + 1, seconds: Math.max(1, Math.round(wait ?? 0)) }];
  }
}

export const players = [];
let bar = null;
let deck = null; // the player of kept takes
let lastPress = null; // the button that was pressed last, outside of the bar

document.addEventListener('click', ({ target }) => {
  const button = target.closest?.('button');
  if (button && !button.closest('.timbre-player')) lastPress = button;
}, true);
document.addEventListener('timbre-lost', () => {
  for (const player of players) if (player.speaking) player.cut();
});
// A page that is left tells so: a take whose connection only broke waits for its listener.
window.addEventListener('pagehide', () => {
  for (const { speaking, feed } of players) {
    if (speaking && feed.path) navigator.sendBeacon(new URL(`${feed.path}/leave`, document.baseURI));
  }
});

// A player of a component, until that has left the page; `page`: see Player.
export function addPlayer(root, page) {
  open();
  const player = new Player(root, page);
  players.push(player);
  whenGone(root, () => players.splice(players.indexOf(player), 1)[0].close());
  return player;
}

// Called by the component of Gradio when it appears (studio/ui/live_player.py).
export function mount({ element, trigger, props, server, watch }) {
  const page = {
    ask: (id, start) => server.missing({ id, start }),
    leave: (id) => server.leave({ id }).catch(() => {}),
    tell: trigger,
  };
  const player = addPlayer(element.querySelector('.timbre-source'), page);
  if (props.value) player.feed.past.add(props.value.id);
  watch('value', () => player.take(props.value));
}

function open() {
  if (bar) return;
  addStyle(new URL('./player.css', import.meta.url));
  Sound.open();
  bar = new Bar({ volume: setVolume, rate: setRate });
  bar.showVolume(kept(VOLUME, 0, 1));
  bar.showRate(kept(RATE, 0.5, 2));
}

// One for all players, and for the next visit.
function setVolume(level) {
  keep(VOLUME, level);
  for (const { speaker } of players) speaker.volume(level);
  bar.showVolume(level);
}

function setRate(rate) {
  keep(RATE, rate);
  for (const { speaker } of players) speaker.send({ do: 'rate', rate });
  bar.showRate(rate);
}

// Plays a kept take: { take, voice, text, samples }. Pressed again while it plays, it pauses.
export function hear({ take, voice, text, samples }) {
  open();
  const again = bar.player?.kept === take && !bar.player.now.failed;
  const whole = again && bar.player.received >= Number(samples) && !bar.player.now.report?.first;
  if (again && (whole || bar.player.active || !bar.player.now.over)) return bar.player.toggle();
  const page = { ask: async () => null, leave() {}, tell() {} };
  if (!deck) players.push((deck = new Player(bar.root, page)));
  const ended = { reason: 'finished', message: '', take };
  const total = Number(samples);
  const payload = { id: `${take} ${performance.now()}`, voice, text, total, made: total, state: 'done', ended };
  deck.feed.load({ ...payload, raw: `${KEPT}/${take}.pcm` }, () => {
    deck.now.failed = true;
    deck.now.again = () => hear({ take, voice, text, samples });
    deck.over();
    deck.describe();
  });
}

function wavFile(chunks) {
  const size = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const head = new DataView(new ArrayBuffer(44));
  const write = (at, text) => [...text].forEach((letter, i) => head.setUint8(at + i, letter.charCodeAt(0)));
  write(0, 'RIFF');
  head.setUint32(4, 36 + size, true);
  write(8, 'WAVEfmt ');
  [[16, 16], [24, 24000], [28, 48000], [40, size]].forEach(([at, value]) => head.setUint32(at, value, true));
  [[20, 1], [22, 1], [32, 2], [34, 16]].forEach(([at, value]) => head.setUint16(at, value, true));
  write(36, 'data');
  return new Blob([head, ...chunks], { type: 'audio/wav' });
}

window.timbre = { addPlayer, hear, players, Sound }; // for the console and tests
