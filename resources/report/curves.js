{
  const host = $("#curve-chart");
  const [corpus, index, control, model, other] = ["corpus", "index", "control", "model", "other"].map((name) => $(`#curve-${name}`));
  const chips = $("#curve-languages");
  const table = $("#curve-table");
  const option = (value, text) => el("option", { value }, text);
  const here = () => data().curves.corpora[corpus.value];
  const curvesOf = (one, name = control.value) => (name === "none" ? one.curves : one.controls?.[name] ?? {});
  const models = () => here().models.filter((one) => index.value in curvesOf(one));
  const byName = (name) => models().find((one) => one.name === name);
  const keep = (select, options) => {
    const before = select.value;
    select.replaceChildren(...options);
    if (options.some((one) => one.value === before)) select.value = before;
  };

  function indexesChanged() {
    const found = [...new Set(here().models.flatMap((one) => Object.keys(one.curves)))];
    const known = Object.keys(data().curves.indexes);
    found.sort((a, b) => known.indexOf(a) - known.indexOf(b));
    keep(index, found.map((name) => option(name, data().curves.indexes[name] ?? name)));
    controlsChanged();
  }

  function controlsChanged() {
    const found = Object.keys(data().curves.controls).filter((name) => here().models.some((one) => index.value in curvesOf(one, name)));
    keep(control, found.map((name) => option(name, data().curves.controls[name])));
    control.parentElement.hidden = $("#curve-why").hidden = found.length < 2;
    modelsChanged();
  }

  function modelsChanged() {
    const names = models().map((one) => one.name);
    keep(model, names.map((name) => option(name, name)));
    keep(other, [option("", "no other model"), ...names.map((name) => option(name, name))]);
    languagesChanged();
  }

  function languagesChanged() {
    const codes = Object.keys(curvesOf(byName(model.value))[index.value]).map((pair) => pair.slice(pair.indexOf("-") + 1));
    const before = new Set($$("input:checked", chips).map((box) => box.value));
    const preferred = data().curves.preferred;
    let chosen = codes.filter((code) => before.has(code));
    if (!chosen.length) chosen = codes.filter((code) => preferred.includes(code));
    if (!chosen.length) chosen = codes.slice(0, 8);
    chips.replaceChildren(...codes.map((code) => {
      const box = el("input", { type: "checkbox", value: code, colour: data().curves.languages[code].colour });
      box.checked = chosen.includes(code);
      return el("label", {}, box, data().curves.languages[code].name);
    }));
    draw();
  }

  function series() {
    const codes = $$("input:checked", chips).map((box) => box.value);
    const of = (one, dashed) => codes.flatMap((code) => {
      const values = one && curvesOf(one)[index.value]?.[`en-${code}`];
      if (!values) return [];
      const { name, colour } = data().curves.languages[code];
      const label = dashed ? `${name} (dashed)` : name;
      return [{ label, colour, dashed, dots: !dashed, points: values.map((value, layer) => [layer, value === null ? null : value / 10000]) }];
    });
    return [...of(byName(model.value), false), ...(other.value ? of(byName(other.value), true) : [])];
  }

  function draw() {
    const measured = control.value === "none";
    const indexName = data().curves.indexes[index.value] ?? index.value;
    const ylabel = measured ? indexName : `${indexName}, controlled`;
    const what = measured ? indexName : `${indexName}, ${data().curves.controls[control.value]},`;
    const found = series();
    const values = found.flatMap((one) => one.points.map(([, y]) => y)).filter((y) => y !== null);
    const between = values.every((y) => y >= 0 && y <= 1);
    lineChart(host, { series: found, xlabel: "layer", ylabel, name: `${what} by layer: ${model.value}`, low: between ? 0 : null, high: between ? 1 : null });
    if (table.open) fillTable(found);
  }

  function fillTable(found = series()) {
    const layers = Math.max(0, ...found.map((one) => one.points.length));
    const head = el("tr", {}, el("th", { scope: "col" }, "layer"), ...found.map((one) => el("th", { scope: "col" }, one.label)));
    const rows = Array.from({ length: layers }, (_, layer) =>
      el("tr", {}, el("th", { scope: "row" }, String(layer)), ...found.map((one) => el("td", {}, one.points[layer]?.[1] == null ? "–" : shown(one.points[layer][1], 3)))));
    $(".scroll", table).replaceChildren(el("table", { class: "plain" }, el("thead", {}, head), el("tbody", {}, ...rows)));
  }

  function check(all) {
    for (const box of $$("input", chips)) box.checked = all;
    draw();
  }

  function start() {
    const { corpora } = data().curves;
    if (!corpora.length) {
      $("#curves-form").hidden = table.hidden = true;
      host.replaceChildren(el("p", { class: "muted" }, "No similarities are there yet; any figure with layers makes them."));
      return;
    }
    corpus.replaceChildren(...corpora.map((one, place) => option(place, one.name)));
    corpus.addEventListener("change", indexesChanged);
    index.addEventListener("change", controlsChanged);
    control.addEventListener("change", modelsChanged);
    model.addEventListener("change", languagesChanged);
    other.addEventListener("change", draw);
    chips.addEventListener("change", draw);
    $("#curve-all").addEventListener("click", () => check(true));
    $("#curve-none").addEventListener("click", () => check(false));
    table.addEventListener("toggle", () => table.open && fillTable());
    indexesChanged();
    drawWhenSeen(host, draw);
  }
  $("#curves-form").addEventListener("submit", (event) => event.preventDefault());
  start();
}
