// Freedoms moved exactly: steps along G, closed by Newton's method at once; one that does not close
// is not taken. Over change points, where G is not determined, the way goes on as it came.
const more = model.parameters ? [model.parameters.slice()] : [];  // what functions take besides
const STEP = 0.05, CLOSED = 1e-9, JUMP = 0.6, STRAIGHT = 0.25;
const closed = { closed: new Float64Array(model.nq), residual: new Float64Array(1) };
const velocity = new Float64Array(model.nv);

function under(others, run) {  // with other numbers of the robot
  const before = more.splice(0, more.length, ...others);
  run();
  more.splice(0, more.length, ...before);
}
function shut(next) {  // closed, or null
  close(next, ...more, closed);
  if (!(closed.residual[0] < CLOSED)) return null;
  next.set(closed.closed);
  return next;
}
function stepped(q, freedom, by, looped) {
  velocity.fill(0);
  velocity[freedom.index] = by;
  const next = integrate(q, velocity, ...more);
  if (freedom.q >= 0) next[freedom.q] = q[freedom.q] + by;
  return shut(next) && next.every((x, i) => !looped[i] || Math.abs(x - q[i]) < JUMP) ? next : null;
}
function leapt(q, freedom, by, way) {  // straight on, along what the last step was
  const guess = q.map((x, i) => x + by * way[i]), next = shut(guess.slice());
  return next && next.every((x, i) => Math.abs(x - guess[i]) < STRAIGHT * Math.abs(by)) ? next : null;
}
// freedom: its index in v, its place in q (-1: it has several numbers there) and, kept here, its way;
// looped: of each position whether it is in a loop. Returns [q, how far it went].
function moved(q, freedom, by, looped) {
  let done = 0, size = Math.min(STEP, Math.abs(by));
  while (Math.abs(by - done) > 1e-12 && size > 1e-6) {
    const part = Math.sign(by) * Math.min(size, Math.abs(by - done));
    const next = stepped(q, freedom, part, looped);
    if (next) {
      if (Math.abs(part) > 1e-3) freedom.way = next.map((x, i) => (x - q[i]) / part);
      q = next;
      done += part;
      continue;
    }
    const leap = freedom.q >= 0 && freedom.way && Math.abs(part) > 1e-3 ? leapt(q, freedom, part, freedom.way) : null;
    if (leap) { q = leap; done += part; } else size /= 4;
  }
  return [q, done];
}
