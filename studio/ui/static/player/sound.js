// The page's one AudioContext and the way into it. Knows samples and volume, no takes and no words.
//
// The context is made and the worklet loaded when the page opens; a browser keeps it silent until a
// person touches the page, so every touch and key resumes it. That also brings it back after a phone
// call ("interrupted") or a sleeping tab ("suspended").

import { plainNode } from './plain.js';

export const Sound = {
  context: null,
  loaded: null, // resolves when the worklet can be used
  touched: 0, // performance.now() of the last touch or key

  open() {
    if (this.context) return this.loaded;
    this.context = this.make();
    this.loaded = this.load();
    for (const kind of ['pointerdown', 'touchend', 'click', 'keydown']) {
      document.addEventListener(kind, () => this.touch(), { capture: true, passive: true });
    }
    return this.loaded;
  },

  async load() {
    await this.context.audioWorklet?.addModule(new URL('./worklet.js', import.meta.url));
  },

  node() {
    if (!this.context.audioWorklet) return plainNode(this.context);
    const options = { numberOfInputs: 0, outputChannelCount: [1] };
    return new AudioWorkletNode(this.context, 'timbre-playout', options);
  },

  make() {
    try {
      return new AudioContext({ sampleRate: 24000, latencyHint: 'interactive' });
    } catch {
      return new AudioContext({ latencyHint: 'interactive' }); // the worklet resamples
    }
  },

  touch() {
    this.touched = performance.now();
    this.wake();
  },

  wake() {
    if (this.context && this.silent) this.context.resume().catch(() => {});
  },

  get silent() {
    return this.context.state !== 'running';
  },
};

export const VOLUME = 'timbre-volume';
export const RATE = 'timbre-rate';

// A browser may refuse its storage: then it is 1, as ever.
export function kept(name, least, most) {
  try {
    const number = parseFloat(localStorage.getItem(name));
    return number >= least && number <= most ? number : 1;
  } catch {
    return 1;
  }
}

export function keep(name, number) {
  try {
    localStorage.setItem(name, number);
  } catch {
    // not kept
  }
}

// One voice: a worklet node and its volume. `heard` is called with the worklet's reports.
export class Speaker {
  constructor(heard) {
    this.waiting = [[{ do: 'rate', rate: kept(RATE, 0.5, 2) }]]; // for a worklet that is still loading
    this.gain = new GainNode(Sound.context, { gain: kept(VOLUME, 0, 1) });
    this.gain.connect(Sound.context.destination);
    Sound.loaded.then(() => this.connect(heard));
  }

  connect(heard) {
    this.node = Sound.node();
    this.node.connect(this.gain);
    this.node.port.onmessage = ({ data }) => heard(data);
    this.waiting.forEach((args) => this.node.port.postMessage(...args));
    this.waiting = [];
  }

  send(message, moved = []) {
    if (this.node) this.node.port.postMessage(message, moved);
    else this.waiting.push([message, moved]);
  }

  close() {
    this.send({ do: 'close' });
    Sound.loaded.then(() => this.node.disconnect()); // a ScriptProcessor runs until then
    this.gain.disconnect();
  }

  volume(level) {
    this.gain.gain.setTargetAtTime(level, Sound.context.currentTime, 0.01);
  }
}
