// Updating in place: what is on the page becomes like what was rendered anew, and elements stay the same
// ones. Focus, scroll positions, selections, open tables and what was typed survive because nothing is
// replaced.

import { CHART, HANDLERS, listen } from "./element.js";

// Attributes that belong to whoever uses the page.
const USERS = new Set(["open", "value", "checked"]);

function morph(present, wanted) {
  if (wanted[HANDLERS]) listen(present, wanted[HANDLERS]);
  if (wanted[CHART]) {
    present[CHART] = wanted[CHART]; // what it shows; chart.js draws it when its width is known
    return;
  }
  morphAttributes(present, wanted);
  morphChildren(present, [...wanted.childNodes]);
}

function morphAttributes(present, wanted) {
  if (present.classList.contains("tw")) return; // tables.js says of a box whether it scrolls
  for (const { name } of [...present.attributes]) {
    if (!wanted.hasAttribute(name) && !USERS.has(name)) present.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (!USERS.has(name) && present.getAttribute(name) !== value) present.setAttribute(name, value);
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
    const match = keyed.get(keyOf(child)) ?? (next && !keyOf(next) && alike(next, child) ? next : null);
    if (match && alike(match, child)) {
      // An element that moves loses the focus, so it only moves if the order really changed.
      if (match === next) next = next.nextSibling;
      else parent.insertBefore(match, next);
      if (match === child) continue; // a form that is made once and kept
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

function alike(present, wanted) {
  return (
    present.nodeType === wanted.nodeType &&
    present.nodeName === wanted.nodeName &&
    keyOf(present) === keyOf(wanted)
  );
}
