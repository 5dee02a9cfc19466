// A waveform drawn as it comes. Knows samples and a canvas, nothing of sound cards.

const COLUMN = 1920; // samples of one column: a frame, 80 ms
const BAR = 3; // pixels from bar to bar, at least
const FIRST_BARS = 160; // what the canvas holds at first: 12.8 s

class Wave {
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  clear() {
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

  // At most once a frame of the screen.
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
    const each = Math.max(1, Math.ceil(this.peaks.length / room)); // columns in a bar
    const count = Math.ceil(this.peaks.length / each);
    const step = width / Math.max(Math.min(FIRST_BARS, room), count);
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
