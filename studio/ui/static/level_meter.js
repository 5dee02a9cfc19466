// The level of the microphone while something is recorded, and whether it is right, or why there is no
// microphone. Gradio's recorder asks the browser for it; the meter listens to what it gets.

import { whenGone } from './lifetime.js';

const [FLOOR, QUIET, LOUD] = [-60, -36, -3]; // dB of full scale: the meter's end, too quiet, too loud
const HOLD = 600; // ms for which a peak counts
const AGAIN = 250; // ms between two texts

const meters = new Set();
let native = null; // the browser's getUserMedia
let pressed = null; // what was clicked last

function tap() {
  if (native) return;
  const devices = navigator.mediaDevices;
  native = devices?.getUserMedia?.bind(devices) ?? (() => {}); // a page without HTTPS has no microphone
  document.addEventListener('click', ({ target }) => {
    pressed = target;
    if (!devices && target.closest?.('.record-button')) told((meter) => meter.refuse('insecure'));
  }, true);
  if (!devices) return;
  devices.getUserMedia = async (wanted) => {
    try {
      const stream = await native(wanted);
      if (stream.getAudioTracks().length) told((meter) => meter.listen(stream));
      return stream;
    } catch (error) {
      told((meter) => meter.refuse(error.name === 'NotFoundError' ? 'none' : 'denied'));
      throw error;
    }
  };
}

function told(work) {
  const visible = [...meters].filter(({ root }) => root.parentElement.checkVisibility());
  beside(pressed, visible).forEach(work);
}

class LevelMeter {
  constructor(root) {
    this.root = root;
    this.bar = root.querySelector('[role=meter]');
    this.context = null;
    this.stream = null;
    this.peak = FLOOR;
    this.since = 0;
    this.told = 0;
  }

  listen(stream) {
    this.close();
    this.stream = stream;
    this.context = new AudioContext();
    this.analyser = new AnalyserNode(this.context, { fftSize: 2048 });
    new MediaStreamAudioSourceNode(this.context, { mediaStream: stream }).connect(this.analyser);
    this.samples = new Float32Array(this.analyser.fftSize);
    this.root.hidden = false;
    this.look();
  }

  refuse(why) {
    this.close();
    this.root.hidden = false;
    this.root.dataset.level = why;
  }

  look() {
    if (!this.stream?.getAudioTracks().some(({ readyState }) => readyState === 'live')) return this.close();
    this.analyser.getFloatTimeDomainData(this.samples);
    this.show(decibels(this.samples), performance.now());
    requestAnimationFrame(() => this.look());
    return undefined;
  }

  show(level, now) {
    if (level >= this.peak || now - this.since > HOLD) [this.peak, this.since] = [level, now];
    this.bar.style.setProperty('--share', ((Math.max(level, FLOOR) - FLOOR) / -FLOOR).toFixed(3));
    if (now - this.told < AGAIN) return;
    this.told = now;
    this.bar.setAttribute('aria-valuenow', String(Math.round(Math.max(level, FLOOR))));
    this.root.dataset.level = rated(this.peak);
  }

  close() {
    this.root.hidden = true;
    this.stream = null;
    this.context?.close();
    this.context = null;
  }
}

// The meters that share the smallest part of the page with what was pressed; all, if nothing was.
export function beside(element, all) {
  for (let part = element; part; part = part.parentElement) {
    const within = all.filter(({ root }) => part.contains(root));
    if (within.length) return within;
  }
  return all;
}

export const decibels = (samples) => 20 * Math.log10(Math.max(1e-6, samples.reduce((most, each) => Math.max(most, Math.abs(each)), 0)));

export function rated(peak) {
  if (peak < QUIET) return 'quiet';
  return peak > LOUD ? 'loud' : 'good';
}

// Called by the component of Gradio when it appears (studio/ui/recordings/checks.py).
export function mount({ element }) {
  tap();
  const meter = new LevelMeter(element.querySelector('.timbre-level'));
  meters.add(meter);
  whenGone(element, () => {
    meters.delete(meter);
    meter.close();
  });
}
