{
  const form = $("#filters");
  const fields = { paper: $("#filter-paper"), verdict: $("#filter-verdict"), task: $("#filter-task"), language: $("#filter-language"), state: $("#filter-state") };
  const search = $("#search");
  const entries = $$("article.item, li.finding");
  const texts = new WeakMap();
  const textOf = (node) => {
    if (!texts.has(node)) {
      const names = node.dataset.languages?.split(" ").map((code) => $(`option[value="${CSS.escape(code)}"]`, fields.language)?.textContent ?? "") ?? [];
      texts.set(node, `${node.textContent} ${node.dataset.item ?? ""} ${node.dataset.paper} ${names.join(" ")}`.toLowerCase());
    }
    return texts.get(node);
  };
  const has = (list, value, separator) => (list ?? "").split(separator).includes(value);
  const fits = (node, words) =>
    (!fields.paper.value || node.dataset.paper === fields.paper.value) &&
    (!fields.verdict.value || has(node.dataset.verdicts, fields.verdict.value, "|")) &&
    (!fields.task.value || has(node.dataset.tasks, fields.task.value, " ")) &&
    (!fields.language.value || has(node.dataset.languages, fields.language.value, " ")) &&
    (!fields.state.value || node.dataset.state === fields.state.value) &&
    words.every((word) => textOf(node).includes(word));

  function apply() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const counts = { ARTICLE: [0, 0], LI: [0, 0] };
    for (const node of entries) {
      const fit = fits(node, words);
      node.hidden = !fit;
      counts[node.tagName][0] += fit;
      counts[node.tagName][1] += 1;
    }
    for (const section of $$("section.findings")) section.hidden = !$("li.finding:not([hidden])", section);
    for (const study of $$("section.study")) study.hidden = !$("article.item:not([hidden])", study);
    for (const [part, kind] of [[$("#findings"), "LI"], [$("#items"), "ARTICLE"], [$("#all-items"), "ARTICLE"]]) if (part) part.hidden = !counts[kind][0];
    document.body.dataset.marked = fields.verdict.value;
    $("#nothing").hidden = counts.ARTICLE[0] + counts.LI[0] > 0;
    $("#found").textContent = `${counts.ARTICLE[0]} of ${counts.ARTICLE[1]} tables and figures, ${counts.LI[0]} of ${counts.LI[1]} findings`;
  }

  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 80);
  });
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  // The fields have their first values only after the event.
  form.addEventListener("reset", () => setTimeout(() => { apply(); $("#all-views").dispatchEvent(new Event("change")); }));
  $("#show-all").addEventListener("click", () => { form.reset(); search.focus(); });
  apply();
}
