// Figures whose curves were read off the paper: ours, theirs and the difference drawn on one pair of axes per panel.
for (const host of $$(".readings")) {
  const article = host.closest("article");
  const picture = $(".sheet", article);
  let view = "ours";

  function draw() {
    const panels = data().readings[host.dataset.readings];
    const places = panels.map((panel) => {
      const xs = [...new Set(panel.series.flatMap((one) => one.points.map(([x]) => x)))];
      const numbers = xs.every((x) => x !== "" && Number.isFinite(Number(x)));
      const at = (x) => (numbers ? Number(x) : xs.indexOf(x));
      const series = panel.series.flatMap((one, place) => {
        const colour = COLOURS[place % COLOURS.length];
        const points = (value) => one.points.map((point) => [at(point[0]), value(point)]);
        const difference = ([, ours, theirs]) => (ours === null || theirs === null ? null : ours - theirs);
        if (view === "difference") return [{ label: one.label, colour, dots: true, points: points(difference) }];
        const theirs = { label: view === "both" ? `${one.label}, paper` : one.label, colour, dashed: view === "both", dots: view === "theirs", points: points((point) => point[2]) };
        return view === "theirs" ? [theirs] : [{ label: one.label, colour, dots: true, points: points((point) => point[1]) }, theirs];
      });
      const chart = el("div", { class: "chart" });
      const judged = {};
      for (const one of panel.series) for (const point of one.points) judged[point[3]] = (judged[point[3]] ?? 0) + 1;
      const told = Object.entries(judged).filter(([label]) => label).map(([label, count]) => `${count} ${label}`).join(", ");
      const block = el("div", {}, el("h5", {}, panel.title), chart, el("p", { class: "muted small" }, told));
      return [block, () => lineChart(chart, { series, xlabel: "layer", ylabel: view === "difference" ? "ours − paper" : "value", name: `${panel.title}, ${view}`, categories: numbers ? null : xs, labels: false })];
    });
    host.replaceChildren(...places.map(([block]) => block));
    for (const [, paint] of places) paint();
    if (view === "both") host.append(el("p", { class: "muted small" }, "Solid: ours. Dashed: read off the paper’s figure."));
  }

  article.addEventListener("view", (event) => {
    view = event.detail;
    picture.hidden = view !== "ours";
    host.hidden = view === "ours";
    if (!host.hidden) draw();
  });
  addEventListener("resize", () => host.hidden || draw());
}
