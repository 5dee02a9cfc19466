// Which voices are blended at a place of the map, and how that blend is written.

import { percents } from '../pad/percents.js';

const MOST = 4; // voices of a blend
const LEAST = 0.05; // of a blend; what would have less is left out

const distance = (at, spot) => Math.hypot(at.x - spot.x, at.y - spot.y);

// The nearest spot, as [place in the list, distance]; [-1, Infinity] of none.
export function nearest(at, spots) {
  let found = [-1, Infinity];
  spots.forEach((spot, place) => {
    const far = distance(at, spot);
    if (far < found[1]) found = [place, far];
  });
  return found;
}

// Shares of the nearest voices, by the square of their distance: [[place in the list, share], …].
// Within `touch` of one it is alone.
export function sharesAt(at, spots, touch = 0) {
  const near = nearestOf(at, spots);
  if (!near.length) return [];
  if (near[0][1] <= touch || !near[0][1]) return [[near[0][0], 1]];
  const shares = normal(near.map(([place, far]) => [place, (near[0][1] / far) ** 2]));
  return normal(shares.filter(([, share]) => share >= LEAST));
}

// The MOST nearest, the nearest first: [[place in the list, distance], …].
function nearestOf(at, spots) {
  const near = [];
  spots.forEach((spot, place) => {
    const far = distance(at, spot);
    if (near.length === MOST && far >= near[MOST - 1][1]) return;
    const before = near.findIndex(([, other]) => far < other);
    near.splice(before < 0 ? near.length : before, 0, [place, far]);
    near.length = Math.min(near.length, MOST);
  });
  return near;
}

function normal(weights) {
  const total = weights.reduce((sum, [, weight]) => sum + weight, 0);
  return weights.map(([place, weight]) => [place, weight / total]);
}

// `robert(70)+clara(30)+lower(0.5)`; moods: [[name, strength], …]
export function formula(shares, spots, moods = []) {
  const whole = percents(shares.map(([, share]) => share));
  const voices = shares.map(([place], i) => `${spots[place].written}(${whole[i]})`);
  return [...voices, ...moods.filter(([, dose]) => dose).map(([name, dose]) => `${name}(${dose})`)].join('+');
}

// What is said of it: `Robert 70 %, Clara 30 %, lower 0.5`
export function told(shares, spots, moods = []) {
  const whole = percents(shares.map(([, share]) => share));
  const voices = shares.map(([place], i) => `${spots[place].name} ${whole[i]} %`);
  return [...voices, ...moods.filter(([, dose]) => dose).map(([name, dose]) => `${name} ${dose}`)].join(', ');
}

// Directions, moved apart as far as arrows need to be seen and pulled one by one.
export function spread(turns) {
  const [whole, count] = [2 * Math.PI, turns.length];
  const gap = Math.min(0.45, (0.95 * whole) / count);
  const order = turns.map((_, place) => place).sort((a, b) => turns[a] - turns[b]);
  const apart = order.map((place) => turns[place]);
  for (let round = 0; round < 200; round++) {
    for (let i = 0; i < count && count > 1; i++) {
      const next = (i + 1) % count;
      const between = apart[next] + (next ? 0 : whole) - apart[i];
      if (between >= gap) continue;
      apart[i] -= (gap - between) / 2;
      apart[next] += (gap - between) / 2;
    }
  }
  const found = [...turns];
  order.forEach((place, i) => (found[place] = apart[i]));
  return found;
}
