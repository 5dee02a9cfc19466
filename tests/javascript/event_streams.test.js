// A press is answered once a stream speaks of it, whichever stream that is.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { opened, pressed } from '../../studio/ui/gradio_compat/event_streams.js';

// A stream of answers in the hands of the test.
function stream() {
  const source = { controller: null };
  const body = new ReadableStream({ start: (controller) => (source.controller = controller) });
  source.send = (text) => source.controller.enqueue(new TextEncoder().encode(text));
  source.response = new Response(body);
  return source;
}

const turn = () => new Promise((go) => setImmediate(go));
const joined = (id) => pressed(async () => Response.json({ event_id: id }));

async function isHeldBack(press) {
  let answered = false;
  press.then(() => (answered = true));
  for (let i = 0; i < 5; i++) await turn();
  return !answered;
}

test('a press that an earlier stream spoke of is not held back', async () => {
  const [first, second] = [stream(), stream()];
  await opened(new AbortController().signal, async () => first.response);
  first.send('data: {"event_id":"quick"}');
  await turn();
  await opened(new AbortController().signal, async () => second.response);
  assert.equal(await isHeldBack(joined('quick')), false);
});

test('a press waits until the stream speaks of it', async () => {
  const source = stream();
  await opened(new AbortController().signal, async () => source.response);
  const press = joined('slow');
  assert.equal(await isHeldBack(press), true);
  source.send('data: {"event_');
  source.send('id":"slow"}');
  assert.equal((await press).status, 200);
});

test('no press is held back by a stream that was closed, or for ever', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const [source, gradio] = [stream(), new AbortController()];
  await opened(gradio.signal, async () => source.response);
  const press = joined('late');
  gradio.abort();
  assert.equal((await press).status, 200);
  await opened(new AbortController().signal, async () => stream().response);
  const silent = joined('silent');
  await turn();
  mock.timers.tick(5000);
  assert.equal((await silent).status, 200);
  mock.timers.reset();
});
