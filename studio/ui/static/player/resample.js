// From 24 kHz to whatever the device runs at, when the browser would not open a 24 kHz context.
// A windowed sinc, one kernel for each phase of the exact ratio. Knows nothing but samples.

const TAPS = 32;

function divisor(a, b) {
  return b ? divisor(b, a % b) : a;
}

// One kernel: TAPS weights around a point `fraction` of a sample after the middle.
function kernel(fraction, cutoff) {
  const weights = Float32Array.from({ length: TAPS }, (_, tap) => {
    const x = tap - (TAPS / 2 - 1) - fraction;
    const window = 0.5 + 0.5 * Math.cos((2 * Math.PI * x) / TAPS);
    const angle = Math.PI * x * cutoff;
    return window * (x === 0 ? 1 : Math.sin(angle) / angle);
  });
  const sum = weights.reduce((a, b) => a + b);
  return weights.map((weight) => weight / sum);
}

export class Resampler {
  constructor(from, to) {
    const common = divisor(from, to);
    this.up = to / common; // phases between two source samples
    this.down = from / common; // phases between two output samples
    const cutoff = 0.94 * Math.min(1, to / from);
    this.kernels = Array.from({ length: this.up }, (_, p) => kernel(p / this.up, cutoff));
    this.past = new Float32Array(TAPS);
    this.phase = 0;
  }

  // `read` fills a block with the next source samples.
  render(read, out) {
    const last = this.phase + this.down * out.length;
    const line = new Float32Array(TAPS + Math.floor(last / this.up));
    line.set(this.past);
    read(line.subarray(TAPS));
    for (let i = 0; i < out.length; i++) out[i] = this.weigh(line, this.phase + this.down * i);
    this.past = line.slice(line.length - TAPS);
    this.phase = last % this.up;
  }

  weigh(line, phase) {
    const at = Math.floor(phase / this.up);
    const weights = this.kernels[phase % this.up];
    let sum = 0;
    for (let tap = 0; tap < TAPS; tap++) sum += line[at + tap] * weights[tap];
    return sum;
  }
}
