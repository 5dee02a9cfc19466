// Answers that come late: a poll read the script before a press changed it, or what is shown of it,
// and the answer to the press came first.

const LATE = 30; // s by which an answer may be older than what is shown; more is a clock that was put back

// shown: the value that the board has; since: ms since a press was answered. A server that was started
// again knows no view: after a while its own holds.
export function isLate({ number, changed, view, polled }, shown, since) {
  if (number !== shown.number) return polled;
  const age = shown.changed - changed;
  return (polled && view !== shown.view && since < 1000 * LATE) || (age > 0 && age < LATE);
}
