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

// The text, cut to a width if it must be; the whole stands in the chart's table.
export function fit(text, width, size = 13, weight = 400) {
  if (textWidth(text, size, weight) <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(`${text.slice(0, middle).trimEnd()}…`, size, weight) <= width) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low).trimEnd()}…`;
}
