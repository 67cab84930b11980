// Rows are sorted inside their group, by what is shown; rows that sum up stay last.
{
  const orders = new WeakMap();
  const heads = (table) => {
    const rows = [...table.tHead.rows];
    const last = [...rows.at(-1).cells];
    return rows.length > 1 && rows[0].cells[0]?.rowSpan > 1 ? [rows[0].cells[0], ...last] : last;
  };
  const key = (row, place, view) => {
    const cell = row.cells[place];
    if (!cell) return null;
    if (place === 0 || !cell.dataset.value) return place === 0 || cell.classList.contains("fact") ? cell.textContent.trim() : null;
    // A fact that no paper has is the same in every view.
    const alone = cell.classList.contains("fact") && !cell.dataset.printed;
    const text = alone ? cell.dataset.value : view === "theirs" ? cell.dataset.printed : view === "difference" ? cell.dataset.difference : cell.dataset.value;
    const number = Number(text);
    return text && Number.isFinite(number) ? number : null;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en"));

  function sort(table, head, place) {
    const view = table.closest("article").dataset.view ?? "both";
    const first = place === 0 ? "ascending" : "descending";
    const steps = [null, first, first === "ascending" ? "descending" : "ascending"];
    const next = steps[(steps.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
    for (const other of heads(table)) other.removeAttribute("aria-sort");
    if (next) head.setAttribute("aria-sort", next);
    for (const body of table.tBodies) {
      if (!orders.has(body)) orders.set(body, [...body.rows]);
      const rows = orders.get(body);
      const fixed = rows.filter((row) => row.classList.contains("group"));
      const sums = rows.filter((row) => row.classList.contains("summary"));
      const free = rows.filter((row) => !fixed.includes(row) && !sums.includes(row));
      if (!next) { body.append(...rows); continue; }
      const keyed = free.map((row) => [row, key(row, place, view)]);
      const there = keyed.filter(([, value]) => value !== null).sort((a, b) => compare(a[1], b[1]));
      if (next === "descending") there.reverse();
      const absent = keyed.filter(([, value]) => value === null);
      body.append(...fixed, ...[...there, ...absent].map(([row]) => row), ...sums);
    }
  }

  for (const table of $$("article.item table")) {
    if (!table.tHead) continue;
    heads(table).forEach((head, place) => {
      const button = el("button", { type: "button", class: "sort" });
      button.append(...head.childNodes);
      if (!button.textContent.trim()) return;
      head.append(button);
      button.addEventListener("click", () => sort(table, head, place));
    });
  }
}
