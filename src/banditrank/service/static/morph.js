// Updates the DOM in place from newly rendered elements. Existing elements are kept, and with them focus,
// scroll positions, selections, open tables and input.

import { CHART, HANDLERS, listen } from "./element.js";

// Attributes that the user changes.
const USER_ATTRIBUTES = new Set(["open", "value", "checked"]);

function morph(present, wanted) {
  if (wanted[HANDLERS]) listen(present, wanted[HANDLERS]);
  if (wanted[CHART]) {
    present[CHART] = wanted[CHART]; // chart.js draws it when its width is known
    return;
  }
  morphAttributes(present, wanted);
  morphChildren(present, [...wanted.childNodes]);
}

function morphAttributes(present, wanted) {
  if (present.classList.contains("tw")) return; // tables.js sets the attributes of scroll boxes
  for (const { name } of [...present.attributes]) {
    if (!wanted.hasAttribute(name) && !USER_ATTRIBUTES.has(name)) present.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (!USER_ATTRIBUTES.has(name) && present.getAttribute(name) !== value) present.setAttribute(name, value);
  }
}

export function morphChildren(parent, wanted) {
  const keyed = new Map();
  const kept = new Set(wanted.map(keyOf).filter(Boolean));
  for (const child of [...parent.childNodes]) {
    const key = keyOf(child);
    if (key && !kept.has(key)) child.remove();
    else if (key) keyed.set(key, child);
  }
  let next = parent.firstChild;
  for (const child of wanted) {
    const unkeyed = next && !keyOf(next) && isSameElement(next, child) ? next : null;
    const match = keyed.get(keyOf(child)) ?? unkeyed;
    if (match && isSameElement(match, child)) {
      // An element that moves loses the focus, so it moves only if the order changed.
      if (match === next) next = next.nextSibling;
      else parent.insertBefore(match, next);
      if (match === child) continue; // an element that is created once and reused
      if (match.nodeType === Node.TEXT_NODE) {
        if (match.data !== child.data) match.data = child.data;
      } else {
        morph(match, child);
      }
    } else {
      parent.insertBefore(child, next);
      if (match) {
        if (match === next) next = next.nextSibling;
        match.remove();
      }
    }
  }
  while (next) {
    const rest = next.nextSibling;
    next.remove();
    next = rest;
  }
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") || node.id : "";
}

function isSameElement(present, wanted) {
  return (
    present.nodeType === wanted.nodeType &&
    present.nodeName === wanted.nodeName &&
    keyOf(present) === keyOf(wanted)
  );
}
