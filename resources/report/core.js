// Elements are built from text alone: nothing in this page is ever parsed as markup.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "colour") node.style.setProperty("--c", value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Read when first needed: most readers of a table never ask for it.
let parsed = null;
const data = () => (parsed ??= JSON.parse($("#data").textContent));

// A true minus sign, as in the tables.
const shown = (value, digits) => (value < 0 ? "−" : "") + Math.abs(value).toFixed(digits);
const signed = (value, digits) => (value > 0 && Math.abs(value).toFixed(digits) > 0 ? "+" : "") + shown(value, digits);
const definitions = (pairs) => el("dl", {}, ...pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  const code = $("code", button.parentElement);
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    // Some browsers give a page from the disk no clipboard; then the command is at least selected.
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), 1600);
});
