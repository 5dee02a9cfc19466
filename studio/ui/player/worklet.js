// The audio thread: renders the playout and reports what was heard. Knows no network and no page.

const REPORT_SECONDS = 0.033;

// On the audio thread the time is a global; plain.js hands in the context instead.
const time = () => (typeof context === 'undefined' ? currentTime : context.currentTime);

class TimbrePlayout extends AudioWorkletProcessor {
  constructor() {
    super();
    this.playout = new Playout();
    this.stretch = new Stretch((block) => this.playout.render(block));
    this.resampler = sampleRate === SOURCE_RATE ? null : new Resampler(SOURCE_RATE, sampleRate);
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

  // All samples of the take that are still here.
  give() {
    this.port.postMessage({ take: this.take, given: this.playout.chunks });
  }

  close() {
    this.open = false;
  }

  process(_, [[out]]) {
    if (this.resampler) this.resampler.render((block) => this.stretch.render(block), out);
    else this.stretch.render(out);
    this.report();
    return this.open;
  }

  // The first sound at once, everything else thirty times a second, silence once.
  report() {
    const { state, played, lead, underruns, prebuffer, paused, first } = this.playout;
    const begins = played > 0 && !this.sounded;
    const changed = state !== this.state || paused !== this.paused;
    const due = state !== 'idle' && state !== 'ended' && time() - this.reported > REPORT_SECONDS;
    if (!begins && !changed && !due) return;
    this.port.postMessage({ take: this.take, state, played, lead, underruns, prebuffer, paused, first });
    Object.assign(this, { state, paused, reported: time() });
    this.sounded ||= begins;
  }
}

registerProcessor('timbre-playout', TimbrePlayout);
