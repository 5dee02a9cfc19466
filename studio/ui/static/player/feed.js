// What arrives: payloads of the Gradio event, bytes of the raw route, in whatever order and number.
// What leaves: each sample once, in order. Knows no sound card and no page.

const RAW_PATIENCE = 700; // ms in which the raw route must bring what has been made
const ASK_AGAIN = 250; // ms
const TRY_AGAIN = 1000; // ms between tries to go on after a cut

function samplesOf(base64) {
  const text = atob(base64);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  return new Int16Array(bytes.buffer);
}

function joined(head, rest) {
  const all = new Uint8Array(head.length + rest.length);
  all.set(head);
  all.set(rest, head.length);
  return all;
}

export class Feed {
  // listener: begin(payload), audio(samples), news(payload), whole(total; null: not yet), lost()
  // ask(id, start): the server's answer to a gap, a payload or null
  constructor(listener, ask) {
    this.listener = listener;
    this.ask = ask;
    this.rawAllowed = true;
    this.id = null;
    this.received = 0; // samples
    this.seq = 0; // of the latest payload
    this.total = null; // samples, once known
    this.told = null; // the total that the listener was told
    this.asking = false;
    this.dropped = false;
    this.transport = 'event';
    this.raw = null; // an AbortController while the raw route is read
    this.path = null; // of the raw route, where it is one
    this.cut = false; // the event broke off: the raw route alone brings the rest
    this.broken = false; // there is no connection now
    this.past = new Set(); // ids of takes that are over for us
  }

  take(payload) {
    if (!payload?.id || this.past.has(payload.id)) return;
    if (payload.id !== this.id) this.begin(payload);
    if (payload.seq <= this.seq) return;
    this.seq = payload.seq;
    this.path = payload.raw ?? this.path;
    if (!this.dropped) this.hear(payload.start, samplesOf(payload.pcm));
    if (payload.ended) this.total = payload.made;
    this.listener.news(payload); // also of a take that was stopped: it may have been kept
    if (this.dropped) return;
    if (!this.cut) this.tryRaw(payload);
    this.settle();
  }

  begin(payload) {
    this.leaveRaw();
    this.past.add(this.id);
    Object.assign(this, { id: payload.id, seq: 0, received: 0, total: null, dropped: false });
    Object.assign(this, { told: null, asking: false, transport: 'event', path: null, cut: false, broken: false });
    this.listener.begin(payload);
  }

  // A take that is kept: all of it is there to be fetched. `failed` is called where it is not.
  async load(payload, failed) {
    this.begin(payload);
    this.listener.news(payload);
    const raw = (this.raw = new AbortController());
    try {
      await this.readRaw(new URL(payload.raw, document.baseURI), raw);
      if (this.raw !== raw) return;
      this.raw = null;
      this.settle();
    } catch {
      if (this.raw === raw) failed();
    }
  }

  // The connection broke: go on at the sample that was reached once it is back. Returns whether
  // this is tried; then `lost` of the listener is called where the server has not the rest.
  goOn() {
    if (!this.path || this.cut) return this.cut;
    this.leaveRaw();
    [this.cut, this.broken, this.rawAllowed] = [true, true, true]; // the cut, not a proxy, ended the raw route
    this.readRest(this.id, this.path);
    return true;
  }

  async readRest(id, path) {
    const wanted = () => this.cut && this.id === id && !this.dropped;
    while (wanted()) {
      const raw = (this.raw = new AbortController());
      try {
        await this.readRaw(new URL(path, document.baseURI), raw);
        if (this.raw !== raw) return;
        this.raw = null;
        const answer = await this.ask(id, this.received);
        if (!wanted()) return;
        if (!answer || answer.ended?.reason === 'cancelled') return this.listener.lost();
        if (answer.state !== 'done') this.total = null; // it goes on, or is being kept
        else return this.takeRest(answer);
      } catch (error) {
        if (!wanted()) return;
        [this.raw, this.broken] = [null, true];
        if (error.status === 404) return this.listener.lost();
      }
      await new Promise((go) => setTimeout(go, TRY_AGAIN));
    }
  }

  takeRest(answer) {
    this.hear(answer.start, samplesOf(answer.pcm));
    this.total = answer.made;
    this.cut = false;
    this.listener.news(answer);
    this.settle();
  }

  // Nothing more of this take is wanted.
  drop() {
    this.dropped = true;
    this.leaveRaw();
  }

  hear(start, samples) {
    const known = this.received - start; // samples of these that are here already
    if (known < 0 && !this.raw) this.fill(start); // what the raw route brings is not asked for
    if (known < 0 || known >= samples.length || this.dropped) return;
    const fresh = known ? samples.slice(known) : samples;
    this.received += fresh.length;
    if (this.told !== null && this.told === this.total && this.received > this.total) this.reopen();
    this.listener.audio(fresh);
  }

  // The raw route was cut off where it seemed to end: the event goes on.
  reopen() {
    [this.total, this.told, this.rawAllowed] = [null, null, false];
    this.listener.whole(null);
  }

  settle() {
    if (this.told === this.total) return;
    if (this.received >= this.total) {
      this.told = this.total;
      this.listener.whole(this.total);
    } else if (!this.raw) {
      this.fill(this.total);
    }
  }

  // A gap: payloads were merged on their way. Ask for what is missing until it is here.
  async fill(until) {
    if (this.asking) return;
    this.asking = true;
    const { id } = this;
    while (this.id === id && !this.dropped && this.received < until) {
      const before = this.received;
      const answer = await this.ask(id, before).catch(() => undefined);
      if (this.id !== id || this.dropped) return;
      if (answer === null) return this.listener.lost(); // the server has let it go
      if (answer) this.hear(answer.start, samplesOf(answer.pcm));
      if (this.received === before) await new Promise((go) => setTimeout(go, ASK_AGAIN));
    }
    if (this.id !== id || this.dropped) return;
    this.asking = false;
    this.settle();
  }

  tryRaw(payload) {
    if (this.raw && payload.made > this.received) this.watch();
    else if (payload.raw && this.rawAllowed && !this.raw && this.total === null) this.listen(payload.raw);
  }

  // A proxy that holds answers back would leave us waiting: go back to the event.
  watch() {
    const { raw, received } = this;
    setTimeout(() => {
      if (raw === this.raw && this.received === received) this.refuseRaw();
    }, RAW_PATIENCE);
  }

  refuseRaw() {
    this.rawAllowed = false;
    this.leaveRaw();
    this.transport = 'event';
    this.settle();
  }

  leaveRaw() {
    this.raw?.abort();
    this.raw = null;
  }

  async listen(path) {
    const raw = (this.raw = new AbortController());
    try {
      await this.readRaw(new URL(path, document.baseURI), raw);
      if (this.raw === raw) this.raw = null;
      this.settle();
    } catch {
      if (this.raw === raw) this.refuseRaw();
    }
  }

  async readRaw(url, raw) {
    let at = this.received;
    url.searchParams.set('from', at);
    const response = await fetch(url, { signal: raw.signal });
    if (!response.ok) throw Object.assign(new Error(`${response.status}`), { status: response.status });
    this.broken = false;
    let half = new Uint8Array(0); // a sample cut in two by the network
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (this.raw !== raw) return;
      if (done) return void (this.total ??= at); // often before the event tells
      const bytes = joined(half, value);
      const even = bytes.length & ~1;
      this.transport = 'raw';
      this.hear(at, new Int16Array(bytes.buffer.slice(0, even)));
      at += even / 2;
      half = bytes.slice(even);
      this.settle();
    }
  }
}
