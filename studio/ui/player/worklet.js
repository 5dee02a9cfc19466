// The audio thread: renders the playout and reports what was heard. Knows no network and no page.

const REPORT_SECONDS = 0.033;

// On the audio thread the time is a global; plain.js hands in the context instead.
const time = () => (typeof context === 'undefined' ? currentTime : context.currentTime);

class TimbrePlayout extends AudioWorkletProcessor {
  constructor() {
    super();
    this.playout = new Playout();
    this.resampler = sampleRate === SOURCE_RATE ? null : new Resampler(SOURCE_RATE, sampleRate);
    this.peak = 0;
    this.reported = 0;
    this.sounded = false;
    this.take = null;
    this.open = true;
    this.port.onmessage = ({ data }) => this[data.do](data);
  }

  begin({ take }) {
    this.take = take;
    this.sounded = false;
    this.playout.begin();
  }

  push({ samples }) {
    this.playout.push(samples, time());
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

  close() {
    this.open = false;
  }

  process(_, [[out]]) {
    if (this.resampler) this.resampler.render((block) => this.playout.render(block), out);
    else this.playout.render(out);
    for (const sample of out) this.peak = Math.max(this.peak, Math.abs(sample));
    this.report();
    return this.open;
  }

  // The first sound at once, everything else thirty times a second, silence once.
  report() {
    const { state, played, lead, underruns, prebuffer, paused } = this.playout;
    const first = played > 0 && !this.sounded;
    const changed = state !== this.state || paused !== this.paused;
    const due = state !== 'idle' && state !== 'ended' && time() - this.reported > REPORT_SECONDS;
    if (!first && !changed && !due) return;
    const { take, peak } = this;
    this.port.postMessage({ take, state, played, lead, underruns, prebuffer, paused, peak });
    Object.assign(this, { state, paused, peak: 0, reported: time() });
    this.sounded ||= first;
  }
}

registerProcessor('timbre-playout', TimbrePlayout);
