// The audio thread's end of a player: a processor in an AudioWorklet, loaded by sound.js.

import { Processor } from './processor.js';

class TimbrePlayout extends AudioWorkletProcessor {
  constructor() {
    super();
    this.processor = new Processor(this.port, sampleRate, () => currentTime);
  }

  process(_, [[out]]) {
    return this.processor.process(out);
  }
}

registerProcessor('timbre-playout', TimbrePlayout);
