// What arrives at a player, put together once and in order: a network that a test plays.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Feed } from '../../studio/ui/static/player/feed.js';
import { times } from './random.js';

globalThis.document = { baseURI: 'http://studio/' };

const pcm = (samples) => btoa('\0'.repeat(2 * samples));
const TAKE = { id: 'take', start: 0, pcm: '' };

// A feed whose listener writes down what is reported.
function listening(ask = async () => null) {
  const reports = [];
  const feed = new Feed({
    begin() {},
    news() {},
    audio: (samples) => reports.push(`heard ${samples.length}`),
    whole: (total) => reports.push(`whole ${total}`),
    lost: () => reports.push('lost'),
  }, ask);
  return { feed, reports };
}

async function until(condition) {
  while (!condition()) await new Promise((go) => setTimeout(go));
}

function rawRoute(samples) {
  globalThis.fetch = async () => new Response(new Int16Array(samples).buffer);
}

for (const { raw, made, late } of [
  { raw: 480, made: 480, late: [] },
  { raw: 480, made: 960, late: ['heard 480', 'whole 960'] }, // it was cut off
]) {
  test(`the raw route brings ${raw} of ${made} samples before the event tells the end`, async () => {
    rawRoute(raw);
    const { feed, reports } = listening(async (id, start) => ({ start, pcm: pcm(made - raw) }));
    feed.take({ ...TAKE, raw: 'raw', seq: 1, made: 0 });
    await until(() => reports.length && !feed.raw);
    assert.deepEqual(reports, [`heard ${raw}`, `whole ${raw}`]);
    feed.take({ ...TAKE, raw: 'raw', seq: 2, start: raw, made, ended: { reason: 'finished' } });
    await until(() => !feed.asking);
    assert.deepEqual(reports.slice(2), late);
  });
}

test('a raw route that seemed to end is not the end', async () => {
  rawRoute(480);
  const { feed, reports } = listening();
  feed.take({ ...TAKE, raw: 'raw', seq: 1, made: 0 });
  await until(() => reports.includes('whole 480'));
  feed.take({ ...TAKE, seq: 2, start: 480, pcm: pcm(480), made: 960 });
  feed.take({ ...TAKE, seq: 3, start: 960, made: 960, ended: { reason: 'finished' } });
  assert.deepEqual(reports, ['heard 480', 'whole 480', 'whole null', 'heard 480', 'whole 960']);
});

test('what the server has let go is asked for once', async () => {
  let requests = 0;
  const { feed, reports } = listening(async () => (requests++, null));
  feed.take({ ...TAKE, seq: 1, pcm: pcm(480), made: 480 });
  feed.take({ ...TAKE, seq: 9, made: 960, ended: { reason: 'finished' } });
  await until(() => reports.includes('lost'));
  assert.deepEqual([requests, reports], [1, ['heard 480', 'lost']]);
});

test('a stop while a gap is asked for ends it', async () => {
  let [asked, answer] = [0, null];
  const { feed, reports } = listening(() => (asked++, new Promise((go) => (answer = go))));
  feed.take({ ...TAKE, seq: 1, pcm: pcm(480), made: 480 });
  feed.take({ ...TAKE, seq: 9, made: 960, ended: { reason: 'finished' } });
  feed.drop();
  answer({ start: 480, pcm: pcm(480) });
  await new Promise((go) => setTimeout(go));
  assert.deepEqual([asked, reports], [1, ['heard 480']]);
});

test('payloads may be lost and merged, and each sample is heard once', () =>
  times(60, async (draw) => {
    const total = draw.whole(1, 4000);
    const heard = [];
    const sound = Int16Array.from({ length: total }, (_, i) => i % 30_000);
    const coded = (start, stop) =>
      Buffer.from(sound.slice(start, stop).buffer).toString('base64');
    const ask = async (id, start) => ({ start, pcm: coded(start, start + draw.whole(1, 900)) });
    let whole = null;
    const feed = new Feed({
      begin() {}, news() {}, lost: assert.fail,
      audio: (samples) => heard.push(...samples),
      whole: (count) => (whole = count),
    }, ask);
    let [seq, previous, sent] = [0, 0, 0];
    while (sent < total) {
      const made = Math.min(total, sent + draw.whole(1, 700));
      const payload = { ...TAKE, seq: ++seq, start: previous, pcm: coded(previous, made), made };
      if (draw.real(0, 1) < 0.6) feed.take(payload); // else it is merged into the next
      [previous, sent] = [sent, made];
    }
    feed.take({ ...TAKE, seq: ++seq, start: total, made: total, ended: { reason: 'finished' } });
    await until(() => whole !== null);
    assert.equal(whole, total);
    assert.deepEqual(heard, [...sound]);
  }));

test('after a cut the rest is fetched from the sample that was reached', async () => {
  const requests = [];
  const routes = [
    () => new Response(new Int16Array(480).buffer), // before the cut, which breaks the next two
    () => { throw new TypeError('network'); },
    () => { throw new TypeError('network'); },
    () => new Response(new Int16Array(240).buffer),
    () => new Response(new Int16Array(0).buffer),
  ];
  globalThis.fetch = async (url) => {
    requests.push(Number(url.searchParams.get('from')));
    return routes.shift()();
  };
  const answers = [{ start: 720, pcm: '', made: 720, state: 'ended' }, { start: 720, pcm: '', made: 720, state: 'done', ended: { reason: 'finished' } }];
  const { feed, reports } = listening(async () => answers.shift());
  feed.take({ ...TAKE, raw: 'raw', seq: 1, made: 0 });
  await until(() => reports.includes('heard 480') && !feed.raw);
  assert.equal(feed.goOn(), true);
  assert.equal(feed.broken, true);
  await until(() => !feed.cut);
  assert.deepEqual(requests, [0, 480, 480, 480, 720]);
  assert.deepEqual(reports.filter((each) => !each.includes('null')), ['heard 480', 'whole 480', 'heard 240', 'whole 720']);
  assert.equal(feed.broken, false);
});

test('what the server has let go after a cut is lost', async () => {
  globalThis.fetch = async () => new Response('', { status: 404 });
  const { feed, reports } = listening();
  feed.take({ ...TAKE, raw: 'raw', seq: 1, made: 0 });
  await until(() => !feed.raw);
  feed.goOn();
  await until(() => reports.includes('lost'));
});

test('without a raw route nothing is tried', () => {
  const { feed } = listening();
  feed.take({ ...TAKE, seq: 1, made: 0 });
  assert.equal(feed.goOn(), false);
});
