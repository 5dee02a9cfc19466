// How the map looks. All places are px of the canvas.

const DOT = 5; // px; smaller where there are many
const [LABELS, FEW_LABELS] = [80, 20]; // names, at most, as far as they do not cover one another
const MANY = 200; // voices, among which few have their names
const TRIED = 400; // voices that a name is tried for
const CROSS = 10;

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
    const box = labelBox(pen, name, x, y, canvas.width / ratio);
    if (taken.length >= most || taken.some((each) => overlap(each, box))) continue;
    taken.push(box);
    pen.fillText(name, box.left, y - 8);
  }
}

// Above its dot, inside the frame.
function labelBox(pen, name, x, y, width) {
  const wide = pen.measureText(name).width;
  const left = Math.min(width - wide - 2, Math.max(2, x - wide / 2));
  return { left, right: left + wide + 4, top: y - 22, bottom: y - 6 };
}

const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

// now: { cross, lines: [{ x, y, share }], arrows: [{ name, dose, x, y }], pointed: { name, x, y } }
export function paint(canvas, dots, style, { cross, lines, arrows, pointed }) {
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

function paintArrow(pen, cross, { name, dose, x, y }, { ink, text, paper, font }) {
  pen.globalAlpha = dose ? 1 : 0.55;
  pen.strokeStyle = pen.fillStyle = ink;
  pen.lineWidth = dose ? 3 : 1.5;
  pen.beginPath();
  pen.moveTo(cross.x, cross.y);
  pen.lineTo(x, y);
  pen.stroke();
  disc(pen, x, y, dose ? 6 : 4.5);
  pen.globalAlpha = 1;
  const left = x < cross.x;
  write(pen, dose ? `${name} ${dose}` : name, x + (left ? -9 : 9), y + 4, left ? 'right' : 'left', { text, paper, font });
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

// Readable over dots and lines.
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
