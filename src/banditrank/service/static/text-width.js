// Width of text in charts, in the font of the page.

const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map();
let family = null;

export function textWidth(text, size = 13, weight = 400) {
  family ??= getComputedStyle(document.body).fontFamily;
  const font = `${weight} ${size}px ${family}`;
  const cacheKey = `${font}|${text}`;
  if (!widths.has(cacheKey)) {
    if (widths.size > 5000) widths.clear();
    canvas.font = font;
    widths.set(cacheKey, canvas.measureText(text).width);
  }
  return widths.get(cacheKey);
}

// The text, truncated in its middle if it is too wide, because names often differ at their ends.
export function fitText(text, width, size = 13, weight = 400) {
  if (textWidth(text, size, weight) <= width) return text;
  let [low, high] = [1, text.length];
  while (low < high) {
    const kept = Math.ceil((low + high) / 2);
    if (textWidth(truncate(text, kept), size, weight) <= width) low = kept;
    else high = kept - 1;
  }
  return truncate(text, low);
}

const truncate = (text, kept) => {
  const tail = Math.floor(kept * 0.4);
  return `${text.slice(0, kept - tail).trimEnd()}…${tail ? text.slice(-tail).trimStart() : ""}`;
};
