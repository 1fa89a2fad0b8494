// Tables, and the ones that stand behind charts.

import { choices } from "./choices.js";
import { h } from "./element.js";

// A table whose first column names its rows, in a box of its own that scrolls if it must.
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

// Whether it scrolls is known once it is on the page: markScrollBoxes says so to those who use a keyboard.
export const scrollBox = (name, ...children) => h("div", { class: "tw", "data-name": name }, ...children);

export function markScrollBoxes(root) {
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

// The table behind a chart; its rows are made while it is open, so that closed ones cost nothing.
export function behind(key, caption, head, rows) {
  const open = choices.openTables.has(key);
  const toggle = (event) => {
    const now = event.currentTarget.open;
    if (now === choices.openTables.has(key)) return;
    if (now) choices.openTables.add(key);
    else choices.openTables.delete(key);
    choices.onChange();
  };
  return h(
    "details",
    { "data-key": `t-${key}`, "data-table": key, open, on: { toggle } },
    h("summary", null, "Show as table", h("span", { class: "vh" }, `: ${caption}`)),
    open && table(caption, head, rows()),
  );
}
