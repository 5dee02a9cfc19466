// Plays faster or slower at the same pitch (WSOLA), as studio/time_stretch.py does for files: grains
// of 40 ms are read `rate` times as fast as they are written, each moved by at most 12 ms to where it
// continues the last one best. Knows nothing but samples.

const GRAIN = 960; // 40 ms at 24 kHz
const HOP = GRAIN / 2;
const REACH = 288; // 12 ms
const READ = 128; // samples read at a time
const STRIDE = 2; // samples from one compared to the next
const WINDOW = Float32Array.from({ length: GRAIN }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / GRAIN));

export class Stretch {
  // read(block): fills a block with the next samples
  constructor(read) {
    this.read = read;
    this.rate = 1;
    this.active = false; // at rate 1 the samples pass as they are, until another rate is chosen
  }

  render(out) {
    if (this.rate !== 1 && !this.active) this.start();
    if (!this.active) return this.read(out);
    for (let filled = 0; filled < out.length; ) {
      if (this.given === HOP) this.lay();
      const count = Math.min(out.length - filled, HOP - this.given);
      out.set(this.laid.subarray(this.given, this.given + count), filled);
      filled += count;
      this.given += count;
    }
  }

  start() {
    this.line = new Float32Array(16 * GRAIN); // input; grains start at `place`, and a bit aside
    this.filled = 0;
    this.place = 0; // a fraction
    this.natural = 0; // where the last grain goes on in the input
    this.tail = new Float32Array(HOP); // the last grain's second half
    this.laid = new Float32Array(HOP);
    this.given = HOP;
    this.active = true;
    this.begun = false;
  }

  // The next half grain of output.
  lay() {
    const place = Math.round(this.place);
    this.fill(Math.max(place + REACH + GRAIN, this.natural + HOP));
    const start = this.begun ? this.best(place) : place;
    for (let i = 0; i < HOP; i++) {
      const rise = this.begun ? WINDOW[i] : 1; // the first grain starts at full level
      this.laid[i] = this.tail[i] + this.line[start + i] * rise;
      this.tail[i] = this.line[start + HOP + i] * WINDOW[HOP + i];
    }
    [this.natural, this.given, this.begun] = [start + HOP, 0, true];
    this.place += HOP * this.rate;
    this.forget();
  }

  fill(until) {
    for (; this.filled < until; this.filled += READ) {
      this.read(this.line.subarray(this.filled, this.filled + READ));
    }
  }

  // The start near `place` that is most like what the last grain would go on with.
  best(place) {
    const { line, natural } = this;
    let [found, most] = [place, -Infinity];
    for (let start = Math.max(0, place - REACH); start <= place + REACH; start++) {
      let [likeness, energy] = [0, 1e-9];
      for (let i = 0; i < HOP; i += STRIDE) {
        likeness += line[natural + i] * line[start + i];
        energy += line[start + i] * line[start + i];
      }
      const alike = likeness / Math.sqrt(energy);
      if (alike > most) [found, most] = [start, alike];
    }
    return found;
  }

  // Input before the next search is dropped. In silence at rate 1 there is nothing left to do.
  forget() {
    const keep = Math.max(0, Math.min(this.natural, Math.round(this.place) - REACH));
    this.line.copyWithin(0, keep, this.filled);
    this.filled = Math.max(0, this.filled - keep);
    this.place -= keep;
    this.natural -= keep;
    if (this.rate !== 1) return;
    const left = [this.line.subarray(0, this.filled), this.tail, this.laid];
    this.active = left.some((samples) => samples.some(Boolean));
  }
}
