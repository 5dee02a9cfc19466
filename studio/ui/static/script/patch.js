// Brings an element up to date with new HTML of the server, touching only what the server changed:
// what did not change stays the same element, so a press, the focus and what the page itself has set
// (shown, opened, marked, typed) survive. Knows no scripts.

// The element that a piece of HTML describes.
export function elementOf(html) {
  const template = document.createElement('template');
  template.innerHTML = html;
  return template.content.firstElementChild;
}

// live: in the page, made from `before`. Returns the element that now stands there.
export function patch(live, before, after) {
  if (before.isEqualNode(after)) return live;
  if (!alike(before, after) || live.childNodes.length !== before.childNodes.length) {
    const fresh = after.cloneNode(true);
    live.replaceWith(fresh);
    return fresh;
  }
  if (live.nodeType !== Node.ELEMENT_NODE) {
    live.nodeValue = after.nodeValue;
    return live;
  }
  patchAttributes(live, before, after);
  patchChildren(live, [...before.childNodes], [...after.childNodes]);
  return live;
}

function patchAttributes(live, before, after) {
  for (const { name } of [...before.attributes]) {
    if (!after.hasAttribute(name)) live.removeAttribute(name);
  }
  for (const { name, value } of [...after.attributes]) {
    if (before.getAttribute(name) !== value) live.setAttribute(name, value);
  }
  // An option that was chosen by hand no longer follows its attribute.
  const chosen = after.hasAttribute('selected');
  if (live.nodeName === 'OPTION' && chosen !== before.hasAttribute('selected')) live.selected = chosen;
}

// Children that are alike from the start and from the end stay; those between are exchanged.
function patchChildren(live, before, after) {
  const children = [...live.childNodes];
  const most = Math.min(before.length, after.length);
  const count = (same) => {
    let place = 0;
    while (place < most && same(place)) place++;
    return place;
  };
  const start = count((place) => alike(before[place], after[place]));
  const end = Math.min(
    most - start,
    count((place) => alike(before.at(-1 - place), after.at(-1 - place))),
  );
  const rest = before.length - end;
  const following = children[rest] ?? null;
  for (let place = start; place < rest; place++) children[place].remove();
  for (const each of after.slice(start, after.length - end)) {
    live.insertBefore(each.cloneNode(true), following);
  }
  for (let place = 0; place < start; place++) patch(children[place], before[place], after[place]);
  for (let place = 1; place <= end; place++) {
    patch(children.at(-place), before.at(-place), after.at(-place));
  }
}

// Whether one may become the other: of one kind, and what is pressed still does the same.
function alike(one, two) {
  if (one.nodeName !== two.nodeName) return false;
  if (one.nodeType !== Node.ELEMENT_NODE) return true;
  const data = (node) => ['act', 'play', 'take', 'part', 'who', 'page'].map((name) => node.dataset?.[name]);
  const [mine, theirs] = [data(one), data(two)];
  return mine.every((value, place) => value === theirs[place]);
}
