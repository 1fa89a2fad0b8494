// Adding and retiring items of a surface. What was learned of a retired item stays, and it can come back.

import { addItems, retireItem } from "./api.js";
import { h } from "./element.js";
import { field, lines, outcome, submitting } from "./form.js";
import { morphChildren } from "./morph.js";
import { scrollBox } from "./tables.js";
import { list, plural, whole } from "./words.js";

let said = { words: "", refused: false };
let waiting = false;
let halves = null; // the table and the form, made once: a form that is moved loses the focus

export function itemsView(surface, onSurface, redraw) {
  const shown = surface.items.filter((item) => !item.retired);
  const spare = shown.length - surface.n_positions;
  const stuck = spare ? "" : ": none can be retired before one is added";
  const act = async (work, words) => {
    if (waiting) return;
    waiting = true;
    try {
      onSurface(await work());
      said = { words, refused: false };
    } catch (error) {
      said = { words: error.message, refused: true };
    }
    waiting = false;
    redraw();
  };
  halves ??= h(
    "div",
    { class: "two", "data-key": "items" },
    h("div"),
    addForm(surface.name, (changed) => (onSurface(changed), redraw())),
  );
  morphChildren(halves.firstChild, [itemsTable(surface, spare, act)]);
  return [
    h(
      "div",
      { class: "title" },
      h("p", null, h("a", { href: "#" }, `Back to ${surface.name}`)),
      h("h1", null, "Items"),
      h(
        "p",
        { class: "m" },
        `${plural(shown.length, "item")} for ${plural(surface.n_positions, "position")}${stuck}.`,
      ),
    ),
    h("p", { class: said.refused ? "outcome refused" : "outcome", role: "status" }, said.words),
    halves,
  ];
}

const itemsTable = (surface, spare, act) =>
  scrollBox(
    "Items",
    h(
      "table",
      { class: "items" },
      h("caption", { class: "vh" }, `Items of ${surface.name}`),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Item"),
          h("th", { scope: "col" }, "State"),
          h("th", { scope: "col" }, h("span", { class: "vh" }, "Change")),
        ),
      ),
      h(
        "tbody",
        null,
        surface.items.map((item) => row(surface, item, spare, act)),
      ),
    ),
  );

function row(surface, item, spare, act) {
  const hidden = h("span", { class: "vh" }, ` ${item.name}`);
  const button = item.retired
    ? h(
        "button",
        {
          type: "button",
          on: { click: () => act(() => addItems(surface.name, [item.name]), `${item.name} is shown again.`) },
        },
        "Bring back",
        hidden,
      )
    : h(
        "button",
        {
          type: "button",
          disabled: spare < 1,
          on: {
            click: () =>
              act(
                () => retireItem(surface.name, item.name),
                `${item.name} is retired; what was learned of it stays.`,
              ),
          },
        },
        "Retire",
        hidden,
      );
  return h(
    "tr",
    { "data-key": `item-${item.name}` },
    h("th", { scope: "row", class: "wrap-any" }, item.name),
    h("td", { class: item.retired ? "m" : null }, item.retired ? "Retired" : "Shown"),
    h("td", { class: "r" }, button),
  );
}

function addForm(name, onSurface) {
  const submit = (event) => {
    event.preventDefault();
    const sent = event.currentTarget;
    const items = lines(new FormData(sent).get("added"));
    submitting(sent, async () => {
      onSurface(await addItems(name, items));
      sent.reset();
      return items.length <= 3 ? `Added ${list(items)}.` : `Added ${whole(items.length)} items.`;
    });
  };
  return h(
    "form",
    { class: "form", "data-key": "add-items", on: { submit } },
    h("h2", null, "Add items"),
    field(
      "added",
      "Names",
      h("textarea", { name: "added", rows: 6, required: true }),
      "One a line. They are shown from now on; the first clicks tell how good they are.",
    ),
    outcome(),
    h("div", { class: "actions" }, h("button", { type: "submit", class: "main" }, "Add them")),
  );
}
