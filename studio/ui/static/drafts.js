// What a browser keeps: the fields that somebody was filling in, and an id of the browser. Called by
// events of Gradio (studio/ui/drafts.py). Runs in the browser alone, so a cut connection loses nothing.

export const drafts = new Set(); // names of those that were filled in

// A recording is a file of the server's, which forgets it after a while.
const isThere = (value) => fetch(value.url, { method: 'HEAD' }).then(({ ok }) => ok, () => false);
const filled = async (value) => (value?.url && !(await isThere(value)) ? null : value);

// The values that this tab had last, or the browser; [] sets nothing. `choices`: of each field all that
// it may have, null for any; a choice that is no more stays as it is now.
export async function fill(name, choices, ...now) {
  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(name) ?? localStorage.getItem(name));
  } catch {
    // no storage here
  }
  drafts.add(name);
  if (kept?.length !== now.length) return []; // somebody may be typing by now
  const there = (value, n) => !choices[n] || choices[n].includes(value);
  return Promise.all(kept.map((value, n) => (there(value, n) ? filled(value) : now[n])));
}

// What is said in a recording; nothing where the recording is gone.
export function wordsOf(recording, words) {
  return recording ? words : '';
}

export function keep(name, ...now) {
  if (!drafts.has(name)) return [];
  try {
    for (const store of [sessionStorage, localStorage]) store.setItem(name, JSON.stringify(now));
  } catch {
    // no storage here
  }
  return [];
}

// An id of this browser. It is the permission to see the takes made here, so it is drawn like a key.
export function browserId() {
  const drawn = [...crypto.getRandomValues(new Uint8Array(16))];
  const fresh = drawn.map((each) => each.toString(16).padStart(2, '0')).join('');
  try {
    const kept = localStorage.getItem('timbre-browser') ?? fresh;
    localStorage.setItem('timbre-browser', kept);
    return kept;
  } catch {
    return fresh;
  }
}

// The values of an event, the last of them the numbers of the scripts that this browser has had.
export function withScripts(...values) {
  try {
    return [...values.slice(0, -1), localStorage.getItem('timbre-scripts') ?? ''];
  } catch {
    return values;
  }
}
