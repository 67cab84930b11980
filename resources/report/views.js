// Differences are written into the cells when they are first asked for.
function addDifferences(article) {
  const cells = $$("td[data-difference]", article);
  const largest = Math.max(...cells.map((cell) => Math.abs(Number(cell.dataset.difference)))) || 1;
  for (const cell of cells) {
    if ($(".diff", cell)) continue;
    const value = Number(cell.dataset.difference);
    const digits = Math.max(2, (cell.dataset.printed?.split(".")[1] ?? "").length);
    cell.append(el("span", { class: "diff" }, signed(value, digits)));
    cell.classList.add(value < 0 ? "below" : "above");
    cell.style.setProperty("--d", `${Math.round((100 * Math.abs(value)) / largest)}%`);
  }
}

function setView(article, view) {
  if (view === "difference") addDifferences(article);
  article.dataset.view = view;
  for (const button of $$("[data-view]", article)) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  article.dispatchEvent(new CustomEvent("view", { detail: view }));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-view]");
  if (button) setView(button.closest("article"), button.dataset.view);
});
$("#all-views").addEventListener("change", (event) => {
  for (const article of $$("article.made:has(.views)")) setView(article, event.target.value);
});
