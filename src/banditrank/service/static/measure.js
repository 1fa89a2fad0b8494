// How wide text is in a chart, in the font that this browser really has.

const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map();
let family = null;

export function textWidth(text, size = 13, weight = 400) {
  family ??= getComputedStyle(document.body).fontFamily;
  const name = `${weight} ${size}px ${family}`;
  const known = `${name}|${text}`;
  if (!widths.has(known)) {
    if (widths.size > 5000) widths.clear();
    canvas.font = name;
    widths.set(known, canvas.measureText(text).width);
  }
  return widths.get(known);
}

// The text, cut in its middle to a width if it must be: names often differ at their ends. The whole stands in
// the chart's table.
export function fit(text, width, size = 13, weight = 400) {
  if (textWidth(text, size, weight) <= width) return text;
  let [low, high] = [1, text.length];
  while (low < high) {
    const kept = Math.ceil((low + high) / 2);
    if (textWidth(shortened(text, kept), size, weight) <= width) low = kept;
    else high = kept - 1;
  }
  return shortened(text, low);
}

const shortened = (text, kept) => {
  const tail = Math.floor(kept * 0.4);
  return `${text.slice(0, kept - tail).trimEnd()}…${tail ? text.slice(-tail).trimStart() : ""}`;
};
