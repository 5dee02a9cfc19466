// A waveform drawn as its samples come. Knows samples and a canvas, nothing of sound cards.

const COLUMN = 480; // samples of one column: 20 ms
const BAR = 3; // pixels from bar to bar, at least
const FIRST_BARS = 640; // columns that the canvas holds at first: 12.8 s

export class Wave {
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  // total: samples to come, where that is known
  clear(total = 0) {
    this.columns = Math.ceil(total / COLUMN) || FIRST_BARS;
    this.peaks = []; // one a column, 0..1
    this.filled = COLUMN; // samples in the last column
    this.played = 0;
    this.draw();
  }

  add(samples) {
    for (const sample of samples) {
      if (this.filled === COLUMN) {
        this.peaks.push(0);
        this.filled = 0;
      }
      const last = this.peaks.length - 1;
      this.peaks[last] = Math.max(this.peaks[last], Math.abs(sample) / 32768);
      this.filled += 1;
    }
    this.draw();
  }

  heard(samples) {
    this.played = samples;
    this.draw();
  }

  // All samples are here: the wave takes the whole width.
  fit() {
    this.columns = 1;
    this.draw();
  }

  // The sample under a point of the canvas.
  sampleAt(x) {
    const columns = Math.max(this.columns, this.peaks.length);
    return Math.max(0, Math.round((x / this.canvas.clientWidth) * columns * COLUMN));
  }

  // Draws at most once per frame of the screen.
  draw() {
    this.due ??= requestAnimationFrame(() => {
      this.due = null;
      this.paint();
    });
  }

  paint() {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return; // the tab is hidden
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext('2d');
    pen.scale(ratio, ratio);
    this.bars(pen, width, height);
  }

  bars(pen, width, height) {
    const room = Math.floor(width / BAR);
    const columns = Math.max(this.columns, this.peaks.length);
    const each = Math.max(1, Math.ceil(columns / room)); // columns in a bar
    const count = Math.ceil(this.peaks.length / each);
    const step = (width * each) / columns;
    const style = getComputedStyle(this.canvas);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    const [heard, coming, line] = ['heard', 'coming', 'line'].map(colour);
    pen.fillStyle = line;
    pen.fillRect(0, height / 2 - 0.5, width, 1);
    for (let bar = 0; bar < count; bar++) {
      const peak = Math.max(...this.peaks.slice(bar * each, (bar + 1) * each));
      const tall = Math.max(2, Math.sqrt(peak) * height);
      pen.fillStyle = bar * each * COLUMN < this.played ? heard : coming;
      pen.fillRect(bar * step, (height - tall) / 2, step * 0.7, tall);
    }
  }
}
