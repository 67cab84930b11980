// The texts of the page whose contrast with what is behind them is below what WCAG asks for.
(() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  // A canvas knows every way of writing a colour.
  const read = (colour) => {
    if (!known.has(colour)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const layer = read(getComputedStyle(at).backgroundColor);
      if (layer[3] > 0) layers.push(layer);
      if (layer[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const poor = [];
  let seen = 0;
  for (const node of document.body.querySelectorAll("*")) {
    const words = [...node.childNodes].filter((child) => child.nodeType === 3 && child.data.trim());
    if (!words.length || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(node.tagName)) continue;
    const style = getComputedStyle(node);
    if (!node.checkVisibility({ contentVisibilityAuto: false, visibilityProperty: true }) || node.closest("[hidden]")) continue;
    const below = behind(node);
    const text = read(node instanceof SVGElement ? style.fill : style.color);
    let shade = 1;
    for (let at = node; at; at = at.parentElement) shade *= Number(getComputedStyle(at).opacity);
    const [a, b] = [light(over([...text.slice(0, 3), text[3] * shade], below)), light(below)].sort((p, q) => q - p);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    seen += 1;
    if (ratio < (large ? 3 : 4.5)) poor.push(`${ratio.toFixed(2)} ${node.tagName}.${node.getAttribute("class")} ${words[0].data.trim().slice(0, 40)}`);
  }
  return { seen, poor: [...new Set(poor)].slice(0, 12) };
})()
