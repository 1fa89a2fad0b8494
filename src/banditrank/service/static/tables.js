// Tables, and the tables of charts.

import { uiState } from "./ui-state.js";
import { h } from "./element.js";

// A table with row headers, in a scroll box.
export function table(caption, head, rows, classes = "") {
  return scrollBox(
    caption,
    h(
      "table",
      { class: classes },
      h("caption", { class: "vh" }, caption),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          head.map((cell, i) => h("th", { scope: "col", class: i ? "r" : null }, cell)),
        ),
      ),
      h(
        "tbody",
        null,
        rows.map((row) =>
          h(
            "tr",
            null,
            row.map((cell, i) => (i ? h("td", { class: "r" }, cell) : h("th", { scope: "row" }, cell))),
          ),
        ),
      ),
    ),
  );
}

// updateScrollBoxes makes the box focusable if it scrolls, which depends on the layout.
export const scrollBox = (name, ...children) => h("div", { class: "tw", "data-name": name }, ...children);

export function updateScrollBoxes(root) {
  for (const box of root.querySelectorAll(".tw")) {
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (scrolls === box.hasAttribute("tabindex")) continue;
    if (scrolls) {
      box.setAttribute("tabindex", 0);
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", box.getAttribute("data-name"));
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  }
}

// The table of a chart.
export const chartTable = (key, caption, head, rows) =>
  foldedTable(key, ["Show as table", h("span", { class: "vh" }, `: ${caption}`)], caption, head, rows);

// A table that a click on its summary opens; its rows are rendered only while it is open.
export function foldedTable(key, summary, caption, head, rows, classes) {
  const open = uiState.openTables.has(key);
  const toggle = (event) => {
    const isOpen = event.currentTarget.open;
    if (isOpen === uiState.openTables.has(key)) return;
    if (isOpen) uiState.openTables.add(key);
    else uiState.openTables.delete(key);
    uiState.onChange();
  };
  return h(
    "details",
    { "data-key": `t-${key}`, "data-table": key, open, on: { toggle } },
    h("summary", null, summary),
    open && table(caption, head, rows(), classes),
  );
}
