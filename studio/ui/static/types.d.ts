// What tsc cannot see: the component that Gradio hands to `mount`, what the page's head defines, and
// the globals of the audio thread.

interface Component {
  element: HTMLElement;
  trigger(event: string, detail?: unknown): void;
  props: { value: any };
  server: Record<string, (argument: any) => Promise<any>>;
  watch(name: string, changed: () => void): void;
}

interface Window {
  timbre: Record<string, any>;
  timbreTorn?: boolean; // a script did not come before the modules were there
  timbreMounting?: Promise<void>; // the components that appeared so far
  gradio_config?: { api_prefix?: string; dependencies: any[] };
}

// What a selector finds is of the kind that the page's HTML has there.
interface ParentNode {
  querySelector(selector: string): any;
  querySelectorAll(selector: string): NodeListOf<any>;
}
interface Element {
  closest(selector: string): any;
}
interface EventTarget {
  closest?(selector: string): any;
}

declare const sampleRate: number;
declare const currentTime: number;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;
