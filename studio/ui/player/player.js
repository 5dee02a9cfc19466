// One player: what arrives (Feed) goes to the ear (Speaker) and the eye (Strip). Knows the take's
// story, and tells the page: 'take' when it is made, 'heard' when it is over for the listener.

const STOPPED = new Set(['cancelled', 'error', 'refused']);

class Player {
  // page: { ask(id, start), leave(id), tell(event, detail) }
  constructor(root, options, page) {
    this.page = page;
    this.root = root;
    this.now = null; // the take that is being heard
    this.speaker = new Speaker((report) => this.heard(report));
    this.feed = new Feed(this, page.ask, options.raw);
    this.strip = new Strip(root, options.language, {
      stop: () => this.stop(),
      pause: () => this.pause(true),
      resume: () => this.pause(false),
      volume: (level) => this.volume(level),
      wake: () => Sound.wake(),
      retry: () => this.now?.pressed?.click(),
    });
    this.strip.showVolume(keptVolume());
    Sound.context.addEventListener('statechange', () => this.describe());
  }

  take(payload) {
    this.feed.take(payload);
  }

  // ---- from the feed

  begin(payload) {
    if (this.now && !this.now.made) this.page.leave(this.now.id);
    for (const other of players) if (other !== this) other.pause(true);
    const now = performance.now();
    const asked = now - Sound.touched < 3000 ? Sound.touched : now;
    this.now = { id: payload.id, asked, first: null, report: null, payload, over: false, made: false };
    this.now.pressed = lastPress; // what would speak it once more
    this.speaker.send({ do: 'begin', take: payload.id });
    this.strip.clear();
    Sound.wake();
  }

  audio(samples) {
    this.strip.wave.add(samples);
    this.speaker.send({ do: 'push', samples }, [samples.buffer]);
  }

  news(payload) {
    this.now.payload = payload;
    if (payload.speed) this.strip.figure('speed', 'times', payload.speed.toFixed(1));
    if (payload.state === 'done') this.made();
    this.describe();
  }

  whole(total) {
    this.speaker.send({ do: 'finish', total });
  }

  made() {
    if (this.now.made) return;
    this.now.made = true;
    const { id, made, ended, first_ms } = this.now.payload;
    this.page.tell('take', { id, samples: made, first_ms, ...ended });
    if (!made) this.over();
  }

  // ---- from the worklet

  heard(report) {
    if (!this.now || report.take !== this.now.id) return;
    this.now.report = report;
    if (this.now.first === null && report.played) this.firstSound();
    this.strip.wave.heard(report.played);
    this.strip.level(report.state === 'playing' ? report.peak : 0);
    if (report.state === 'ended') this.over();
    if (!this.now.over) this.strip.figure('lead', 'seconds', (report.lead / 24000).toFixed(1));
    this.describe();
  }

  firstSound() {
    this.now.first = performance.now() - this.now.asked;
    this.strip.figure('first', 'milliseconds', Math.round(this.now.first));
  }

  over() {
    if (this.now.over) return;
    this.now.over = true;
    this.strip.figure('lead', null, null);
    const { id, report, first } = this.now;
    const { played = 0, underruns = 0 } = report ?? {};
    this.page.tell('heard', { id, played, underruns, first_ms: first });
  }

  // The connection is gone: what has come is played to its end, the rest never comes.
  lost() {
    if (!this.now || this.now.over || this.now.made || this.feed.total !== null) return;
    this.now.lost = true;
    const { received } = this.feed;
    this.feed.drop();
    if (received) this.speaker.send({ do: 'finish', total: received });
    else this.over();
    this.describe();
  }

  // ---- from the person

  stop() {
    this.feed.drop();
    this.now.stopped = true;
    this.speaker.send({ do: 'stop' });
    this.page.leave(this.now.id);
    this.page.tell('stop', { id: this.now.id });
    this.over();
    this.describe();
  }

  pause(yes) {
    if (!this.now || this.now.over) return;
    this.speaker.send({ do: yes ? 'pause' : 'resume' });
    this.strip.paused(yes);
    Sound.wake();
  }

  // One for all players, and for the next visit.
  volume(level) {
    keepVolume(level);
    for (const { speaker, strip } of players) {
      speaker.volume(level);
      strip.showVolume(level);
    }
  }

  // The component is gone from the page.
  close() {
    if (this.now && !this.now.over) this.stop();
    this.speaker.send({ do: 'close' });
  }

  // ---- in words

  describe() {
    if (!this.now) return;
    const { over, payload } = this.now;
    this.strip.allow({ stop: !over, pause: !over });
    this.strip.show(...this.words(payload));
  }

  words(payload) {
    const { report, over, stopped, lost } = this.now;
    if (stopped) return ['cancelled'];
    if (lost) return ['lost'];
    if (payload.ended && (over || STOPPED.has(payload.ended.reason))) return this.lastWords(payload.ended);
    if (Sound.silent) return ['blocked'];
    if (report?.paused) return ['paused'];
    if (report?.underruns && report.state === 'filling') return ['catching_up'];
    if (payload.state !== 'waiting') return ['speaking'];
    return this.place(payload);
  }

  lastWords({ reason, message }) {
    return [reason === 'refused' ? 'error' : reason, {}, message];
  }

  place({ position, wait }) {
    if (position === null) return ['starting'];
    if (position === 0) return ['next'];
    return ['waiting', { position: position + 1, seconds: Math.max(1, Math.round(wait ?? 0)) }];
  }
}

const players = [];
let lastPress = null; // the button that was pressed last, outside of players

document.addEventListener('click', ({ target }) => {
  const button = target.closest?.('button');
  if (button && !button.closest('.timbre-player')) lastPress = button;
}, true);
document.addEventListener('timbre-lost', () => players.forEach((player) => player.lost()));

// Called by the component when it appears; `page` is Gradio's half.
function mount(root, options, page) {
  addStyle();
  Sound.open();
  const gone = players.filter((player) => !player.root.isConnected);
  for (const player of gone) players.splice(players.indexOf(player), 1)[0].close();
  players.push(new Player(root, options, page));
  return players.at(-1);
}

function addStyle() {
  if (document.getElementById('timbre-player-style')) return;
  const style = document.createElement('style');
  style.id = 'timbre-player-style';
  style.textContent = CSS_TEXT;
  document.head.append(style);
}

window.timbre = { mount, players, Sound };
