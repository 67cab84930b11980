// A small line chart: curves with names at their ends, or with a legend below where there is little room.
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933"];

function ticks(low, high) {
  const rough = (high - low) / 5 || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((size) => size >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + 1e-9; place += 1) found.push([place * step, shown(place * step, digits)]);
  return found;
}

// Move labels apart, keeping their order, inside the room that there is.
function spread(wanted, gap, low, high) {
  const order = wanted.map((y, place) => [y, place]).sort((a, b) => a[0] - b[0]);
  let last = low - gap;
  for (const label of order) last = label[0] = Math.max(label[0], last + gap);
  last = high + gap;
  for (const label of order.reverse()) last = label[0] = Math.min(label[0], last - gap);
  const placed = [];
  for (const [y, place] of order) placed[place] = y;
  return placed;
}

// `series`: label, colour, dashed, dots, points [x, y]; x are numbers, or places in `categories`.
function lineChart(host, { series, xlabel, ylabel, name, categories = null, low = null, high = null, labels = true }) {
  const drawn = series.map((one) => ({ ...one, points: one.points.filter(([, y]) => y !== null) })).filter((one) => one.points.length);
  if (!drawn.length) { host.replaceChildren(el("p", { class: "muted" }, "Nothing to draw: choose a language.")); return; }
  const width = Math.max(260, host.clientWidth || 640);
  const named = labels && width > 560;
  const labelled = drawn.filter((one) => !one.dashed || drawn.every((other) => other.dashed));
  const gap = 15;
  const height = Math.max(Math.min(440, Math.max(230, width * 0.46)), named ? labelled.length * gap + 60 : 0);
  const longest = named ? Math.max(...labelled.map((one) => one.label.length)) : 0;
  const box = { left: 46, right: named ? Math.min(230, 34 + 7 * longest) : 14, top: 12, bottom: 42 };
  const xs = drawn.flatMap((one) => one.points.map(([x]) => x));
  const ys = drawn.flatMap((one) => one.points.map(([, y]) => y));
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const span = Math.max(...ys) - Math.min(...ys) || 1;
  const y0 = low ?? Math.min(...ys) - 0.06 * span;
  const y1 = high ?? Math.max(...ys) + 0.06 * span;
  const px = (x) => box.left + ((x - x0) / (x1 - x0 || 1)) * (width - box.left - box.right);
  const py = (y) => height - box.bottom - ((y - y0) / (y1 - y0)) * (height - box.top - box.bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name, tabindex: 0 });
  for (const [y, text] of ticks(y0, y1)) {
    picture.append(svg("line", { class: "grid", x1: box.left, x2: width - box.right, y1: py(y), y2: py(y) }));
    picture.append(svg("text", { class: "tick", x: box.left - 6, y: py(y) + 4, "text-anchor": "end" }, text));
  }
  const every = Math.ceil((x1 - x0 + 1) / ((width - box.left - box.right) / 34));
  for (let x = x0; x <= x1; x += 1) {
    if ((x - x0) % every) continue;
    picture.append(svg("text", { class: "tick", x: px(x), y: height - box.bottom + 18, "text-anchor": "middle" }, categories ? categories[x] : String(x)));
  }
  picture.append(svg("line", { class: "axis", x1: box.left, x2: width - box.right, y1: height - box.bottom, y2: height - box.bottom }));
  picture.append(svg("text", { class: "tick", x: (box.left + width - box.right) / 2, y: height - 6, "text-anchor": "middle" }, xlabel));
  picture.append(svg("text", { class: "tick", x: 12, y: (height - box.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(height - box.bottom) / 2})` }, ylabel));
  for (const one of drawn) {
    const path = one.points.map(([x, y], place) => `${place ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`).join("");
    picture.append(svg("path", { class: one.dashed ? "curve dashed" : "curve", d: path, colour: one.colour }));
    if (one.dots) for (const [x, y] of one.points) picture.append(svg("circle", { class: "dot", cx: px(x), cy: py(y), r: 3, colour: one.colour }));
  }
  if (named) {
    const places = spread(labelled.map((one) => py(one.points.at(-1)[1])), gap, box.top, height - box.bottom);
    labelled.forEach((one, place) => {
      const [x, y] = one.points.at(-1);
      const start = width - box.right + 22;
      picture.append(svg("line", { class: "leader", x1: px(x) + 3, y1: py(y), x2: start - 4, y2: places[place], colour: one.colour }));
      picture.append(svg("text", { x: start, y: places[place] + 4 }, one.label));
    });
  }
  const cross = svg("line", { class: "cross", y1: box.top, y2: height - box.bottom, visibility: "hidden" });
  picture.append(cross);

  let layer = x0 - 1;
  function point(x, clientX, clientY) {
    layer = x;
    fill(cross, { x1: px(x), x2: px(x), visibility: "visible" }, []);
    const values = drawn.map((one) => [one.label, one.points.find(([at]) => at === x)?.[1]]).filter(([, y]) => y !== undefined);
    values.sort((a, b) => b[1] - a[1]);
    const listed = values.slice(0, 18).map(([label, y]) => [label, shown(y, 3)]);
    showTip([el("p", {}, `${xlabel} ${categories ? categories[x] : x}`), definitions(listed)], clientX, clientY);
  }
  const leave = () => { cross.setAttribute("visibility", "hidden"); hideTip(); };
  picture.addEventListener("pointermove", (event) => {
    const frame = picture.getBoundingClientRect();
    const at = ((event.clientX - frame.left) * width) / frame.width;
    const x = Math.round(x0 + ((at - box.left) / (width - box.left - box.right)) * (x1 - x0));
    if (at < box.left - 20 || x > x1) return leave();
    point(Math.max(x0, x), event.clientX, event.clientY);
  });
  picture.addEventListener("pointerleave", leave);
  picture.addEventListener("blur", leave);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const frame = picture.getBoundingClientRect();
    const x = Math.max(x0, Math.min(x1, layer + step));
    point(x, frame.left + (px(x) * frame.width) / width, frame.top + 10);
  });
  host.replaceChildren(picture);
  const legend = named ? [] : labelled;
  if (legend.length && legend[0].label) {
    const line = (one) => svg("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" }, svg("path", { class: one.dashed ? "curve dashed" : "curve", d: "M0 5H22", colour: one.colour }));
    host.append(el("ul", { class: "legend-line" }, ...legend.map((one) => el("li", {}, line(one), one.label))));
  }
}

// Draw when seen, and again when the width changes.
function drawWhenSeen(host, draw) {
  let width = 0;
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    new ResizeObserver(() => {
      if (host.clientWidth === width || !host.clientWidth) return;
      width = host.clientWidth;
      draw();
    }).observe(host);
  }, { rootMargin: "300px" });
  seen.observe(host);
}
