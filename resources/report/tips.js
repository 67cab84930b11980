// One tip for cells and curves. It says in words what colour and place say to the eye.
const tip = $("#tip");
function showTip(children, x, y) {
  tip.replaceChildren(...children);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16;
  tip.style.left = `${Math.max(4, Math.min(left, innerWidth - box.width - 4))}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}
const hideTip = () => (tip.hidden = true);

{
  const told = (cell) => {
    // The browser's own tip would cover ours.
    if (cell.title) { cell.dataset.hint = cell.title; cell.removeAttribute("title"); }
    const text = (selector) => $(selector, cell)?.textContent ?? "";
    const pairs = [["ours", `${text(".ours")} ${text(".std")} ${text(".n")}`.trim()]];
    if ($(".printed", cell)) pairs.push(["paper", text(".printed")]);
    if (cell.dataset.difference) pairs.push(["difference", signed(Number(cell.dataset.difference), 2)]);
    const parts = (cell.dataset.hint ?? "").split("; ").filter((part) => !part.startsWith("printed "));
    const runs = parts.find((part) => / runs$/.test(part));
    if (runs) pairs.push(["runs", runs.replace(/ runs$/, "")]);
    const verdict = parts.filter((part) => part !== runs).join("; ");
    if (verdict) pairs.push(["verdict", verdict]);
    const row = cell.parentElement.cells[0]?.textContent ?? "";
    const place = [...cell.parentElement.cells].indexOf(cell);
    const heads = cell.closest("table").tHead?.rows;
    const last = heads ? [...heads[heads.length - 1].cells] : [];
    const head = last[heads?.length > 1 ? place - 1 : place]?.textContent ?? "";
    return [el("p", {}, `${row}, ${head}`), definitions(pairs)];
  };
  const cellOf = (event) => event.target.closest?.("article.item td:not(.none)");
  document.addEventListener("pointerover", (event) => {
    const cell = cellOf(event);
    if (cell) showTip(told(cell), event.clientX, event.clientY);
    else if (!event.target.closest?.(".chart, .readings")) hideTip();
  });
  const follow = () => {
    const cell = document.activeElement?.closest("article.item td");
    if (!cell) return hideTip();
    const box = cell.getBoundingClientRect();
    showTip(told(cell), box.right - 12, box.bottom - 12);
  };
  document.addEventListener("focusin", follow);
  // Moving to a cell with the keyboard scrolls its table.
  document.addEventListener("scroll", follow, { capture: true, passive: true });

  // One cell of each table can be reached with Tab; arrows move from there.
  for (const table of $$("article.item table")) $("td:not(.none)", table)?.setAttribute("tabindex", "0");
  const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hideTip();
    const cell = cellOf(event);
    if (!cell || !(event.key in moves)) return;
    const [down, right] = moves[event.key];
    const table = cell.closest("table");
    const rows = $$("tbody tr:not(.group)", table);
    const place = cell.cellIndex + right;
    let line = rows.indexOf(cell.parentElement) + down;
    while (rows[line] && rows[line].cells[place]?.matches("td.none")) line += down || rows.length;
    const next = rows[line]?.cells[place];
    if (next?.tagName !== "TD") return;
    event.preventDefault();
    cell.removeAttribute("tabindex");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}
