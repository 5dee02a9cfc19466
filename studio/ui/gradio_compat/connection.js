// A page outlives its connection. Gradio gives up at the first broken answer: it takes no more presses
// and reloads. So it never sees one: what was under way ends, a press waits until the server is there
// again, and a bar says so. Other modules listen to the document's 'timbre-lost' and 'timbre-back'.

const native = window.fetch; // as it was before fetch.js
const SILENCE = 2000; // ms without a word of what is under way, until the server is asked
const PATIENCE = 1500; // ms for an answer to that
const AGAIN = 1000; // ms
const RELOADED = 'timbre-reloaded'; // when the page was, for a script that did not come
const SELDOM = 60_000; // ms between such reloads
const GONE = new Set([502, 503, 504]); // what a proxy says of a server that is not there
const pending = new Set(); // ids of presses that were taken and are not done
const early = new Set(); // ids of presses that were done before the answer to them was read
let back = null; // a promise while the connection is lost
let torn = false; // a script did not come; browsers do not ask for it again

const idPath = () => new URL(`${window.gradio_config?.api_prefix ?? '/gradio_api'}/app_id`.slice(1), document.baseURI);

async function isThere() {
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    return !GONE.has((await native(idPath(), { signal, cache: 'no-store' })).status);
  } catch {
    return false;
  }
}

function lost() {
  back ??= waiting().finally(() => (back = null));
  return back;
}

async function waiting() {
  bar(true);
  document.dispatchEvent(new CustomEvent('timbre-lost'));
  do await new Promise((go) => setTimeout(go, AGAIN));
  while (!(await isThere()));
  if (torn || (await isAnotherPage())) return location.reload(); // drafts are kept
  bar(false);
  document.dispatchEvent(new CustomEvent('timbre-back'));
  document.querySelectorAll('button.timbre-back').forEach((refresh) => refresh.click());
}

// A newer Timbre numbers its events otherwise: presses of this page would do something else.
async function isAnotherPage() {
  const events = ({ dependencies }) => JSON.stringify(dependencies.map((own) => [own.id, own.inputs, own.outputs]));
  try {
    const answer = await native(new URL('config', document.baseURI), { cache: 'no-store' });
    return answer.ok && events(await answer.json()) !== events(window.gradio_config);
  } catch {
    return false;
  }
}

function bar(shown) {
  document.documentElement.classList.toggle('timbre-lost', shown);
  document.querySelector('.timbre-connection')?.toggleAttribute('hidden', !shown);
}

// A press waits for the server, and is then sent once more.
export async function press(request, rest) {
  for (;;) {
    if (back) await back;
    try {
      const answer = await native(request, ...rest);
      if (!GONE.has(answer.status) || (await isThere())) return answer;
    } catch (error) {
      if (rest[0]?.signal?.aborted || (await isThere())) throw error;
    }
    await lost();
  }
}

export async function join(request, rest) {
  const answer = await press(request, rest);
  const body = await answer.clone().json().catch(() => null);
  if (body?.event_id && !early.delete(body.event_id)) pending.add(body.event_id);
  return answer;
}

// The answers of the server; where they break off, an ending for each press under way.
export function answers(request, rest) {
  const encoder = new TextEncoder();
  const failed = { error: '', visible: false };
  const endings = () => {
    const ends = [...pending].map((event_id) => ({ msg: 'process_completed', event_id, output: failed, success: false }));
    pending.clear();
    return [...ends, { msg: 'close_stream' }].map((each) => `data: ${JSON.stringify(each)}\n\n`).join('');
  };
  const body = new ReadableStream({
    start: async (stream) => {
      const whole = await follow(request, rest, (piece) => stream.enqueue(piece));
      if (!whole) stream.enqueue(encoder.encode(endings()));
      stream.close();
      if (whole || request.signal?.aborted) return;
      // Also if it is back at once: what was under way is over.
      document.dispatchEvent(new CustomEvent('timbre-lost'));
      if (!(await isThere())) lost();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

// Whether the stream came to its proper end.
async function follow(request, rest, pass) {
  const decoder = new TextDecoder();
  let [tail, closed, heard] = ['', false, performance.now()];
  let reader = null;
  const watch = setInterval(async () => {
    if (!pending.size || performance.now() - heard < SILENCE) return;
    if (await isThere()) heard = performance.now();
    else reader?.cancel().catch(() => {});
  }, SILENCE / 4);
  try {
    const answer = await native(request, ...rest);
    if (!answer.ok) return false;
    reader = answer.body.getReader();
    for (let piece; !(piece = await reader.read()).done; ) {
      heard = performance.now();
      tail = (tail + decoder.decode(piece.value, { stream: true }));
      const lines = tail.split('\n');
      tail = lines.pop();
      for (const line of lines) closed = read(line) || closed;
      pass(piece.value);
    }
    return closed || !pending.size;
  } catch {
    return closed || Boolean(request.signal?.aborted);
  } finally {
    clearInterval(watch);
  }
}

// Whether a line says that the stream is closed.
function read(line) {
  if (line.startsWith('data: {"msg":"process_completed"')) {
    const id = /"event_id":"(\w+)"/.exec(line)?.[1];
    if (!pending.delete(id)) early.add(id);
  }
  return line.startsWith('data: {"msg":"close_stream"');
}

// Said by Gradio, which imports what hidden tabs need after the page is shown.
window.addEventListener('vite:preloadError', reloadSoon);
if (window.timbreTorn) reloadSoon();

function reloadSoon() {
  if (Date.now() - Number(sessionStorage.getItem(RELOADED)) < SELDOM) return;
  sessionStorage.setItem(RELOADED, String(Date.now()));
  torn = true;
  lost();
}
window.addEventListener('offline', async () => (await isThere()) || lost());
