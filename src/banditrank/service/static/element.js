// Creation of DOM elements; strings become text nodes and never markup.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set("svg g line circle rect path polyline polygon text title".split(" "));

// Properties that morph.js copies from a new element to the existing one.
export const HANDLERS = Symbol("handlers");
export const CHART = Symbol("chart");

// h("td", {class: "r", on: {click: f}}, "text", element, [more], null); attributes and children that are
// null, undefined or false are omitted.
export function h(tag, attributes, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
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

// Adds one listener per type of event, which looks up its handler, so that an update can replace handlers.
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
