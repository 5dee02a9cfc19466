// The one place that wraps window.fetch: Gradio's requests go through connection.js, which survives a
// lost server, and event_streams.js, which loses no answer. All others pass as they are.

import { answers, join, press } from './connection.js';
import { opened, pressed } from './event_streams.js';

const native = window.fetch;

window.fetch = async (/** @type {any} */ request, ...rest) => {
  const { pathname } = new URL(request.url ?? request, document.baseURI);
  if (pathname.endsWith('/queue/data') && request.signal) {
    return opened(request.signal, () => answers(request, rest));
  }
  if (pathname.endsWith('/queue/join')) return pressed(() => join(request, rest));
  if (pathname.includes('/gradio_api/run/')) return press(request, rest);
  return native(request, ...rest);
};
