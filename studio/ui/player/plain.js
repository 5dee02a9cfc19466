// A page that is not secure (plain http on a local network) has no AudioWorklet. Then the worklet's own
// code runs on the page, behind a ScriptProcessor: the same sound, some 40 ms later, and a page that
// is busy can interrupt it.

const PLAIN_BLOCK = 1024; // samples

function plainNode(context) {
  const { port1, port2 } = new MessageChannel();
  const processor = new (plainProcessor(context, port1))();
  const node = context.createScriptProcessor(PLAIN_BLOCK, 0, 1);
  node.onaudioprocess = ({ outputBuffer }) => {
    processor.process(null, [[outputBuffer.getChannelData(0)]]);
  };
  node.port = port2;
  return node;
}

function plainProcessor(context, port) {
  let found;
  const Base = class {
    port = port;
  };
  const names = ['AudioWorkletProcessor', 'registerProcessor', 'sampleRate', 'context'];
  const register = (_, processor) => (found = processor);
  new Function(...names, WORKLET)(Base, register, context.sampleRate, context);
  return found;
}
