// Values of a plot's lines where the pointer is; all that is folded is shown in print.
for (const svg of document.querySelectorAll("svg[data-axes]")) {
  const [left, right, top, bottom, x0, x1, y0, y1, log] = svg.dataset.axes.split(" ").map(Number);
  const shown = (x) => Number(x.toPrecision(4)).toString();
  const across = (x) => x0 + ((x - left) / (right - left)) * (x1 - x0);
  const up = (y) => { const v = y0 + ((bottom - y) / (bottom - top)) * (y1 - y0);
                      return log ? 10 ** v : v; };
  const lines = [...svg.querySelectorAll("path[data-of]")].map((path) => ({
    name: path.dataset.of, colour: path.getAttribute("stroke"),
    runs: path.getAttribute("d").split("M").slice(1)
      .map((run) => run.split("L").map((at) => at.split(" ").map(Number))) }));
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
  cursor.setAttribute("class", "cursor");
  const box = document.createElement("div");
  box.className = "values";
  const frame = svg.closest("figure");
  function leave() { cursor.remove(); box.remove(); }
  function move(event) {
    const size = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / size.width;
    const x = (event.clientX - size.left) * scale, y = (event.clientY - size.top) * scale;
    if (x < left || x > right || y < top || y > bottom) return leave();
    const found = [];
    for (const { name, colour, runs } of lines) {
      let best = null;
      for (const run of runs)
        for (let i = 1; i < run.length; i++) {
          const [a, b] = [run[i - 1], run[i]], width = b[0] - a[0];
          if ((x - a[0]) * (x - b[0]) > 0) continue;
          const at = width ? a[1] + ((x - a[0]) / width) * (b[1] - a[1]) : a[1];
          if (best === null || Math.abs(at - y) < Math.abs(best - y)) best = at;
        }
      if (best !== null) found.push([name, colour, up(best)]);
    }
    for (const [key, value] of Object.entries({ x1: x, x2: x, y1: top, y2: bottom }))
      cursor.setAttribute(key, value);
    svg.append(cursor);
    box.replaceChildren(`${svg.dataset.x}: ${shown(across(x))}`);
    for (const [name, colour, value] of found) {
      const row = document.createElement("div");
      row.textContent = `${name} ${shown(value)}`;
      row.style.color = colour;
      box.append(row);
    }
    frame.append(box);
    const area = frame.getBoundingClientRect(), at = event.clientX - area.left;
    box.style.top = `${event.clientY - area.top + 14}px`;
    box.style.left = `${Math.max(2, Math.min(at + 12, area.width - box.offsetWidth - 4))}px`;
  }
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", leave);
}
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
