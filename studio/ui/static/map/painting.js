// How the map looks. All places are px of the canvas.

const DOT = 5; // px; smaller where there are many
const [LABELS, FEW_LABELS] = [80, 20]; // names, at most, as far as they do not cover one another
const MANY = 200; // voices, among which few have their names
const TRIED = 400; // voices that a name is tried for
const CROSS = 10;
const LABEL = 14; // px high: a mood's name
const LABEL_FONT = '11px';

function penOf(canvas, ratio) {
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  return pen;
}

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

// The boxes of names and, where they are few, of dots, which other labels keep clear of.
export function paintDots(canvas, spots, ratio, style) {
  const pen = penOf(canvas, ratio);
  const radius = spots.length > 500 ? DOT / 2 : DOT;
  for (const { x, y, colour } of spots) {
    pen.fillStyle = colour;
    disc(pen, x, y, radius);
  }
  pen.font = `12px ${style.font}`;
  pen.fillStyle = style.text;
  const [taken, most] = [[], spots.length > MANY ? FEW_LABELS : LABELS];
  for (const { x, y, name } of spots.slice(0, TRIED)) {
    if (taken.length >= most) break;
    const boxes = labelBoxes(pen.measureText(name).width, x, y, canvas.width / ratio);
    const box = boxes.find((each) => !taken.some((other) => shared(each, other)));
    if (!box) continue;
    taken.push(box);
    pen.fillText(name, box.left, box.bottom - 2);
  }
  return spots.length > MANY ? taken : [...taken, ...spots.map((spot) => around(spot, radius))];
}

const around = ({ x, y }, far) => ({ left: x - far, right: x + far, top: y - far, bottom: y + far });

// Where a name may stand: above its dot or below, inside the frame.
function labelBoxes(wide, x, y, width) {
  const left = Math.min(width - wide - 2, Math.max(2, x - wide / 2));
  return [y - 22, y + 6].map((top) => ({ left, right: left + wide + 4, top, bottom: top + 16 }));
}

// now: { cross, lines: [{ x, y, share }], arrows: [{ name, dose, x, y }], pointed: { name, x, y }, names }
export function paint(canvas, dots, style, { cross, lines, arrows, pointed, names }) {
  const ratio = window.devicePixelRatio || 1;
  const pen = penOf(canvas, ratio);
  if (cross) paintLines(pen, cross, lines, style);
  pen.drawImage(dots, 0, 0, canvas.width / ratio, canvas.height / ratio);
  if (cross) {
    arrows.forEach((arrow) => paintArrow(pen, cross, arrow, style));
    pen.fillStyle = style.ink;
    disc(pen, cross.x, cross.y, CROSS);
    pen.fillStyle = '#fff';
    disc(pen, cross.x, cross.y, CROSS / 3);
    paintLabels(pen, cross, arrows, names, style, { width: canvas.width / ratio, height: canvas.height / ratio });
  }
  if (pointed) paintPointed(pen, pointed, style, canvas.width / ratio);
}

function paintLines(pen, cross, lines, { ink }) {
  pen.strokeStyle = ink;
  pen.lineCap = 'round';
  for (const { x, y, share } of lines) {
    pen.globalAlpha = 0.15 + 0.5 * share;
    pen.lineWidth = 1 + 6 * share;
    pen.beginPath();
    pen.moveTo(cross.x, cross.y);
    pen.lineTo(x, y);
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function paintArrow(pen, cross, { dose, x, y }, { ink }) {
  pen.globalAlpha = dose ? 1 : 0.55;
  pen.strokeStyle = pen.fillStyle = ink;
  pen.lineWidth = dose ? 3 : 1.5;
  pen.beginPath();
  pen.moveTo(cross.x, cross.y);
  pen.lineTo(x, y);
  pen.stroke();
  disc(pen, x, y, dose ? 6 : 4.5);
  pen.globalAlpha = 1;
}

// Writes each mood beside its knob, where it covers nothing else that is written.
function paintLabels(pen, cross, arrows, names, style, frame) {
  pen.font = `${LABEL_FONT} ${style.font}`;
  const taken = [...names, around(cross, CROSS), ...arrows.map((knob) => around(knob, 6))];
  for (const { name, dose, x, y } of arrows) {
    const text = dose ? `${name} ${dose}` : name;
    const box = freeBox({ x, y }, pen.measureText(text).width, x < cross.x, taken, frame);
    taken.push(box);
    write(pen, text, box.left, box.bottom - 3, 'left', style, LABEL_FONT);
  }
}

// A place for a text near a point, inside the frame, that overlaps nothing taken; where there is none, the
// one that overlaps the least. `left`: rather to its left.
export function freeBox({ x, y }, wide, left, taken, { width, height }) {
  const sides = left ? [-9 - wide, 9] : [9, -9 - wide];
  const across = [...sides, -wide / 2];
  const places = [0, -16, 16, -32, 32].flatMap((down) => across.map((right) => [x + right, y + down]));
  const boxes = places.map(([from, middle]) => {
    const begin = Math.max(2, Math.min(width - wide - 2, from));
    const top = Math.max(2, Math.min(height - LABEL - 2, middle - LABEL / 2));
    return { left: begin, right: begin + wide, top, bottom: top + LABEL };
  });
  const covered = (box) => taken.reduce((sum, each) => sum + shared(each, box), 0);
  let [best, least] = [boxes[0], Infinity];
  for (const box of boxes) {
    const area = covered(box);
    if (area < least) [best, least] = [box, area];
    if (!area) break;
  }
  return best;
}

// The area that two boxes have in common.
function shared(a, b) {
  const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return wide > 0 && high > 0 ? wide * high : 0;
}

function paintPointed(pen, { name, x, y }, style, width) {
  pen.strokeStyle = style.text;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(x, y, DOT + 4, 0, 2 * Math.PI);
  pen.stroke();
  pen.font = `600 13px ${style.font}`;
  const half = pen.measureText(name).width / 2 + 4;
  write(pen, name, Math.min(width - half, Math.max(half, x)), Math.max(14, y - 13), 'center', style, '600 13px');
}

// Writes a text that is readable over dots and lines.
function write(pen, text, x, y, align, style, size = '11px') {
  pen.font = `${size} ${style.font}`;
  pen.textAlign = align;
  pen.lineWidth = 3;
  pen.lineJoin = 'round';
  pen.strokeStyle = style.paper;
  pen.strokeText(text, x, y);
  pen.fillStyle = style.text;
  pen.fillText(text, x, y);
  pen.textAlign = 'left';
}
