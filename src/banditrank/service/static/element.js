// Elements made in script: text is always text, so that no name from the service is ever taken for markup.

const SVG = "http://www.w3.org/2000/svg";
const OF_SVG = new Set("svg g line circle rect path polyline polygon text title".split(" "));

// What morph.js carries over from a new element to the one that is on the page.
export const HANDLERS = Symbol("handlers");
export const CHART = Symbol("chart");

// h("td", {class: "r", on: {click: f}}, "text", element, [more], null): attributes that are null or false are
// left out, and so are children.
export function h(tag, attributes, ...children) {
  const element = OF_SVG.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") listen(element, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

// Handlers stand in a table that an update can replace; the element listens once for each kind of event.
export function listen(element, handlers) {
  const present = element[HANDLERS] ?? {};
  for (const kind of Object.keys(handlers)) {
    if (!(kind in present)) element.addEventListener(kind, dispatch);
  }
  element[HANDLERS] = handlers;
}

function dispatch(event) {
  event.currentTarget[HANDLERS][event.type]?.(event);
}
