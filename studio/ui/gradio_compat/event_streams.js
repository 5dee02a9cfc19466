// Gradio opens its stream of answers for a press unless one is open. A press that the server takes
// while the last word of the open stream, to close it, is still on its way would be answered to
// nobody. So the page learns that a press was taken once the stream speaks of it or is closed.

const GRACE = 1000; // ms that Gradio may take to see that its stream has ended
const LONGEST = 5000; // ms that a press is held back: whatever happens, no page stands still
const spoken = new Set(); // ids of presses, by any stream: a quick answer may be the last one's
const waiting = new Map(); // from such an id

class Stream {
  over = false;
  asked = new Set(); // who waits for this one

  constructor(signal) {
    signal.addEventListener('abort', () => this.end());
  }

  speaksOf(id) {
    if (this.over || spoken.has(id)) return null;
    return new Promise((go) => {
      const done = () => {
        waiting.delete(id);
        this.asked.delete(done);
        go();
      };
      waiting.set(id, done);
      this.asked.add(done);
      setTimeout(done, LONGEST);
    });
  }

  async watch(body) {
    const [reader, decoder] = [body.getReader(), new TextDecoder()];
    let text = '';
    try {
      for (let piece; !(piece = await reader.read()).done; ) {
        text = text.slice(-64) + decoder.decode(piece.value, { stream: true });
        for (const [, id] of text.matchAll(/"event_id":"(\w+)"/g)) tell(id);
      }
    } catch {
      // closed by Gradio, or a broken line
    }
    setTimeout(() => this.end(), GRACE);
  }

  end() {
    this.over = true;
    [...this.asked].forEach((done) => done());
  }
}

let stream = null; // the newest

function tell(id) {
  if (!spoken.has(id)) setTimeout(() => spoken.delete(id), LONGEST);
  spoken.add(id);
  waiting.get(id)?.();
}

// The stream of answers that Gradio opens; send: requests it.
export async function opened(signal, send) {
  const current = (stream = new Stream(signal));
  let answer = null;
  try {
    answer = await send();
  } finally {
    if (!answer?.ok || !answer.body) current.end();
  }
  if (current.over) return answer;
  const [theirs, ours] = answer.body.tee();
  current.watch(ours);
  return new Response(theirs, answer);
}

export async function pressed(send) {
  const answer = await send();
  const body = await answer.clone().json().catch(() => null);
  if (body?.event_id) await stream?.speaksOf(body.event_id);
  return answer;
}
