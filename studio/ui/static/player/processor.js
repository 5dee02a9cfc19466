// Renders the playout and reports what was heard: on the audio thread (worklet.js), or on the page
// (plain.js). Knows no network; the caller gives port, rate and clock.

import { Playout, SOURCE_RATE } from './playout.js';
import { Resampler } from './resample.js';
import { Stretch } from './stretch.js';

const REPORT_SECONDS = 0.033;

export class Processor {
  // port: to the page; rate: of the device; time: a function that returns seconds
  constructor(port, rate, time) {
    this.port = port;
    this.time = time;
    this.playout = new Playout();
    this.stretch = new Stretch((block) => this.playout.render(block));
    this.resampler = rate === SOURCE_RATE ? null : new Resampler(SOURCE_RATE, rate);
    this.reported = 0;
    this.sounded = false;
    this.take = null;
    this.open = true;
    this.state = 'idle'; // as reported
    this.paused = false;
    this.port.onmessage = ({ data }) => this[data.do](data);
  }

  begin({ take }) {
    this.take = take;
    this.sounded = false;
    this.playout.begin();
  }

  push({ samples }) {
    this.playout.push(samples, this.time());
  }

  hold({ seconds }) {
    this.playout.hold = seconds;
  }

  finish({ total }) {
    this.playout.finish(total);
  }

  stop() {
    this.playout.stop();
  }

  pause() {
    this.playout.pause();
  }

  resume() {
    this.playout.resume();
  }

  seek({ to }) {
    this.playout.seek(to);
  }

  rate({ rate }) {
    this.stretch.rate = rate;
  }

  // Sends all samples of the take that are still here.
  give() {
    this.port.postMessage({ take: this.take, given: this.playout.chunks });
  }

  close() {
    this.open = false;
  }

  // Fills a block; returns whether the processor goes on.
  process(out) {
    if (this.resampler) this.resampler.render((block) => this.stretch.render(block), out);
    else this.stretch.render(out);
    this.report();
    return this.open;
  }

  // Reports the first sound at once, silence once and everything else thirty times a second.
  report() {
    const { state, played, lead, underruns, prebuffer, paused, first } = this.playout;
    const begins = played > 0 && !this.sounded;
    const changed = state !== this.state || paused !== this.paused;
    const due = state !== 'idle' && state !== 'ended' && this.time() - this.reported > REPORT_SECONDS;
    if (!begins && !changed && !due) return;
    this.port.postMessage({ take: this.take, state, played, lead, underruns, prebuffer, paused, first });
    Object.assign(this, { state, paused, reported: this.time() });
    this.sounded ||= begins;
  }
}
