// Filled when it is opened: 48 items share most of their data files.
{
  const duration = (seconds) => (seconds < 120 ? `${seconds.toFixed(0)} s` : seconds < 7200 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`);
  const lines = (value, indent = "") =>
    Object.entries(value).map(([key, inner]) =>
      inner !== null && typeof inner === "object" && !Array.isArray(inner) ? `${indent}${key}:\n${lines(inner, `${indent}  `)}` : `${indent}${key}: ${JSON.stringify(inner)}`).join("\n");
  const long = (text, label) => el("div", { class: "long", tabindex: 0, role: "region", "aria-label": label }, text);

  function describe(item) {
    const known = data().provenance[item];
    const devices = Object.entries(known.devices).map(([name, count]) => `${name === "cpu" ? "CPU" : name} (${count} runs)`).join(", ");
    const settings = Object.fromEntries(known.settings.map((key) => [key, data().settings[key]]));
    const files = known.data.map((place) => data().files[place]);
    const pairs = [
      ["commit", el("code", {}, data().commit)],
      ["training runs", known.runs[1] ? `${known.runs[0]} of ${known.runs[1]} are there` : "none: facts from the registers"],
      ["seeds", known.seeds.join(", ") || "–"],
      ["device", devices || "–"],
      ["training time", known.seconds ? duration(known.seconds) : "–"],
      ["versions", known.versions.join(", ") || "–"],
      ["result files read", String(known.inputs)],
      ["settings", long(lines(settings), "Settings")],
      [`data files (${files.length})`, files.length ? long(files.map(([path, sum]) => `${path}  ${sum || "checksum not known"}`).join("\n"), "Data files") : "–"],
    ];
    return definitions(pairs);
  }

  for (const fold of $$("details[data-provenance]")) {
    fold.addEventListener("toggle", () => {
      const room = $(".filled", fold);
      if (fold.open && !room.firstChild) room.append(describe(fold.closest("article").dataset.item));
    });
  }
}
