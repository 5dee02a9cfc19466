// A page that is not secure (plain http on a local network) has no AudioWorklet. Then the processor
// runs on the page, behind a ScriptProcessor: the same sound, some 40 ms later, and a page that is
// busy can interrupt it.

import { Processor } from './processor.js';

const PLAIN_BLOCK = 1024; // samples

export function plainNode(context) {
  const { port1, port2 } = new MessageChannel();
  const processor = new Processor(port1, context.sampleRate, () => context.currentTime);
  const node = context.createScriptProcessor(PLAIN_BLOCK, 0, 1);
  node.onaudioprocess = ({ outputBuffer }) => processor.process(outputBuffer.getChannelData(0));
  node.port = port2;
  return node;
}
