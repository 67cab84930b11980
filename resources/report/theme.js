{
  const button = $("#theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const read = () => { try { return localStorage.getItem("crossalign-theme"); } catch { return null; } };
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const tell = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Light colours" : "Dark colours");
  };
  if (["light", "dark"].includes(read())) document.documentElement.dataset.theme = read();
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("crossalign-theme", document.documentElement.dataset.theme); } catch { /* a browser without storage */ }
    tell();
  });
  system.addEventListener("change", tell);
  tell();
}
