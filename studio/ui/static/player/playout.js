// What the listener hears next: samples in order, when to start, and quiet edges.
// Runs on the audio thread. Knows no network, no page and no clock: the caller gives the time.
//
//   idle ── push ─▶ filling ── enough lead, or all there ─▶ playing ── all played ─▶ ended
//                      ▲                                       │
//                      └──────────── about to run dry ─────────┘   (an underrun, if more comes)
//
// It is a list of chunks, not a ring of fixed size: an engine 28 times faster than real time delivers
// minutes of lead, and none of it may be dropped. What was played stays for a while, to go back to.

export const SOURCE_RATE = 24000;
const FADE = 60; // samples of a forced edge: 2.5 ms
const FIRST_GROWTH = 0.25; // seconds of prebuffer after the first underrun, at least
const MOST = 2; // seconds of prebuffer, at most
const FORGET = 0.02; // seconds of prebuffer that are not worth waiting for
const HISTORY = 20 * 60 * SOURCE_RATE; // samples behind the position that stay, 58 MB

export class Playout {
  constructor() {
    this.prebuffer = 0; // seconds of lead needed to start; outlives the take
    this.hold = 0; // the same for this take, from a server that is slower than real time
    this.paused = false;
    this.tail = null; // the last FADE samples of a forced stop, fading out
    this.begin();
  }

  // A new take; what still plays of the old one fades out under it.
  begin() {
    if (this.state === 'playing' && !this.paused) this.cut();
    if (this.received && !this.underruns) this.prebuffer = this.calmed();
    this.chunks = []; // Int16Array, from sample `first` of the take on
    this.first = 0;
    this.head = 0; // index of the chunk that plays
    this.offset = 0; // samples already played of it
    this.hold = 0;
    this.lead = 0; // samples received and not yet played
    this.played = 0; // the position in the take
    this.received = 0;
    this.total = null; // known once the engine has ended
    this.underruns = 0;
    this.starved = false;
    this.best = Infinity; // see hear()
    this.late = 0;
    this.rise = FADE; // samples of fade-in done; FADE: none is due
    this.paused = false;
    this.state = 'idle';
  }

  // A take without a gap halves what the next one waits for.
  calmed() {
    const half = this.prebuffer / 2;
    return half < FORGET ? 0 : half;
  }

  push(samples, now) {
    this.chunks.push(samples);
    this.lead += samples.length;
    this.received += samples.length;
    this.hear(samples.length / SOURCE_RATE, now);
    if (this.state === 'idle' || this.state === 'ended') this.state = 'filling';
    if (this.starved) this.grow(samples.length / SOURCE_RATE);
  }

  // How late a chunk came, next to the best one of this take: `now - end of chunk` stays the same
  // for a source at real time, falls for a faster one, and rises only when something held it up.
  hear(seconds, now) {
    const transit = now - this.received / SOURCE_RATE;
    this.best = Math.min(this.best, transit);
    this.late = Math.max(this.late, transit - this.best);
  }

  grow(chunkSeconds) {
    this.gap();
    const wanted = Math.max(FIRST_GROWTH, 2 * this.prebuffer, 1.5 * this.late + chunkSeconds);
    this.prebuffer = Math.min(MOST, wanted);
  }

  gap() {
    this.starved = false;
    this.underruns += 1;
  }

  // Word of the end may come late: until now the last samples were held back for a fade.
  finish(total) {
    this.total = total;
    if (this.starved && this.complete && this.lead) this.gap();
  }

  get complete() {
    return this.total !== null && this.received >= this.total;
  }

  // What has come can be played again; the rest is not waited for.
  stop() {
    if (this.state === 'playing' && !this.paused) this.cut();
    this.total = this.received;
    this.starved = this.paused = false;
    this.state = 'ended';
  }

  // Go on from another position of the take, as far as it is there.
  seek(to) {
    if (this.state === 'playing' && !this.paused) this.cut();
    const target = Math.max(this.first, Math.min(to, this.received));
    [this.head, this.offset] = [0, target - this.first];
    while (this.head < this.chunks.length && this.offset >= this.chunks[this.head].length) {
      this.offset -= this.chunks[this.head++].length;
    }
    [this.played, this.lead, this.rise] = [target, this.received - target, 0];
    this.starved = false;
    this.state = 'filling';
  }

  pause() {
    if (this.paused) return;
    this.paused = true;
    if (this.state === 'playing') this.cut();
  }

  resume() {
    this.paused = false;
  }

  // Take the next samples off as a fading tail; what follows will fade in. A take's last samples
  // are too few for a fade: they end as the take does.
  cut() {
    const whole = this.complete && this.lead < FADE;
    this.tail = this.take(new Float32Array(Math.min(FADE, this.lead)));
    const level = this.rise / FADE; // a fade-in may be under way
    const fall = whole ? 0 : 1 / (this.tail.length + 1);
    this.tail.forEach((_, i, tail) => (tail[i] *= level * (1 - (i + 1) * fall)));
    this.rise = 0;
  }

  render(out) {
    out.fill(0);
    this.move(out.length);
    if (this.state === 'playing' && !this.paused) this.play(out);
    this.mixTail(out);
  }

  // A block is played only if a fade is left after it, unless it is the last one.
  move(block) {
    if (this.paused) return;
    if (this.state === 'filling' && this.ready(block)) this.state = 'playing';
    else if (this.state === 'playing' && !this.complete && this.lead < block + FADE) this.starve();
    if ((this.state === 'playing' || this.state === 'filling') && this.complete && !this.lead) {
      this.state = 'ended';
    }
  }

  ready(block) {
    const enough = Math.max(block + FADE, Math.max(this.prebuffer, this.hold) * SOURCE_RATE);
    return this.complete || this.lead >= enough;
  }

  starve() {
    this.cut();
    this.starved = true;
    this.state = 'filling';
  }

  play(out) {
    const count = Math.min(out.length, this.lead);
    const heard = this.take(out.subarray(0, count));
    for (let i = 0; i < count && this.rise < FADE; i++) heard[i] *= ++this.rise / (FADE + 1);
  }

  // Fill `into` from the chunks; the caller knows that there is enough.
  take(into) {
    let filled = 0;
    while (filled < into.length) {
      const head = this.chunks[this.head];
      const count = Math.min(into.length - filled, head.length - this.offset);
      for (let i = 0; i < count; i++) into[filled + i] = head[this.offset + i] / 32768;
      filled += count;
      this.offset += count;
      if (this.offset === head.length) {
        this.head += 1;
        this.offset = 0;
      }
    }
    this.lead -= filled;
    this.played += filled;
    this.forget();
    return into;
  }

  forget() {
    while (this.head && this.played - this.first - this.chunks[0].length > HISTORY) {
      this.first += this.chunks.shift().length;
      this.head -= 1;
    }
  }

  mixTail(out) {
    if (!this.tail) return;
    const count = Math.min(out.length, this.tail.length);
    for (let i = 0; i < count; i++) out[i] += this.tail[i];
    this.tail = count < this.tail.length ? this.tail.subarray(count) : null;
  }
}
