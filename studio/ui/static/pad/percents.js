// Whole percentages of shares of one, as in a blend's formula: they sum to 100.
export function percents(shares) {
  const whole = shares.map((share) => Math.floor(100 * share));
  const rest = (voice) => 100 * shares[voice] - whole[voice];
  const byRest = shares.map((_, voice) => voice).sort((a, b) => rest(b) - rest(a));
  const left = 100 - whole.reduce((sum, each) => sum + each, 0);
  for (const voice of byRest.slice(0, left)) whole[voice] += 1;
  return whole;
}
