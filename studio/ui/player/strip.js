// What a person sees of a take: the state in words, three figures, a level, the waveform, and the
// buttons. Knows words and elements; sound and transport are the caller's.

function wordsFor(language) {
  const tongue = (language || navigator.language || 'en').toLowerCase().split('-')[0];
  const words = WORDS[tongue] ?? WORDS.en;
  return (key, values = {}) =>
    words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

const SHAPE = `
  <canvas class="wave" aria-hidden="true"></canvas>
  <div class="row">
    <div class="said">
      <span class="state" role="status" aria-live="polite"></span>
      <button type="button" class="wake" hidden></button>
      <button type="button" class="retry" hidden></button>
      <div class="level" aria-hidden="true"><i></i></div>
    </div>
    <dl class="figures">
      <div><dt data-word="first"></dt><dd data-figure="first">–</dd></div>
      <div><dt data-word="speed"></dt><dd data-figure="speed">–</dd></div>
      <div><dt data-word="lead"></dt><dd data-figure="lead">–</dd></div>
    </dl>
    <div class="controls">
      <label><span data-word="volume"></span>
        <input class="volume" type="range" min="0" max="1" step="0.05" value="1">
      </label>
      <button type="button" class="pause" disabled></button>
      <button type="button" class="stop" disabled></button>
    </div>
  </div>`;

class Strip {
  // does: { stop(), pause(), resume(), volume(level), wake(), retry() }
  constructor(root, language, does) {
    this.root = root;
    this.word = wordsFor(language);
    this.does = does;
    root.innerHTML = SHAPE;
    this.part = (name) => root.querySelector(`.${name}`);
    this.wave = new Wave(this.part('wave'));
    this.label();
    this.listen();
    this.show('ready');
  }

  label() {
    this.root.setAttribute('role', 'group');
    this.root.setAttribute('aria-label', this.word('player'));
    for (const term of this.root.querySelectorAll('[data-word]')) {
      term.textContent = this.word(term.dataset.word);
    }
    this.part('stop').textContent = this.word('stop');
    this.part('pause').textContent = this.word('pause');
    this.part('wake').textContent = this.word('wake');
    this.part('retry').textContent = this.word('retry');
  }

  listen() {
    this.part('stop').onclick = () => this.does.stop();
    this.part('pause').onclick = () => (this.isPaused ? this.does.resume() : this.does.pause());
    this.part('wake').onclick = () => this.does.wake();
    this.part('retry').onclick = () => this.does.retry();
    this.part('volume').oninput = ({ target }) => this.does.volume(Number(target.value));
  }

  // key: one of the words; message: a person's sentence instead of it
  show(key, values = {}, message = '') {
    const said = message || this.word(key, values);
    const state = this.part('state');
    if (state.textContent !== said) state.textContent = said; // read aloud once
    this.part('wake').hidden = key !== 'blocked';
    this.part('retry').hidden = key !== 'lost';
    this.root.dataset.state = key;
  }

  // What can be done now.
  allow({ stop, pause }) {
    this.part('stop').disabled = !stop;
    this.part('pause').disabled = !pause;
  }

  paused(yes) {
    this.isPaused = yes;
    this.part('pause').textContent = this.word(yes ? 'resume' : 'pause');
  }

  showVolume(level) {
    this.part('volume').value = level;
  }

  figure(name, unit, value) {
    const shown = this.root.querySelector(`[data-figure=${name}]`);
    shown.textContent = value === null ? '–' : this.word(unit, { value });
  }

  level(peak) {
    this.part('level').firstChild.style.transform = `scaleX(${Math.min(1, Math.sqrt(peak))})`;
  }

  clear() {
    this.wave.clear();
    this.paused(false);
    for (const name of ['first', 'speed', 'lead']) this.figure(name, null, null);
  }
}
