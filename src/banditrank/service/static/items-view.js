// Adds, retires and restores items of a surface.

import { addItems, retireItem } from "./api.js";
import { h } from "./element.js";
import { field, lines, outcomeMessage, submitForm } from "./form.js";
import { morphChildren } from "./morph.js";
import { scrollBox } from "./tables.js";
import { list, plural, whole } from "./format.js";

let message = { text: "", isError: false };
let isBusy = false;
let columns = null; // the table and the form, created once: a form that moves loses the focus

export function itemsView(surface, onSurface, redraw) {
  const active = surface.items.filter((item) => !item.retired);
  const spare = active.length - surface.n_positions;
  const hint = spare ? "" : "; add an item before you retire another";
  const act = async (request, success) => {
    if (isBusy) return;
    isBusy = true;
    try {
      onSurface(await request());
      message = { text: success, isError: false };
    } catch (error) {
      message = { text: error.message, isError: true };
    }
    isBusy = false;
    redraw();
  };
  columns ??= h(
    "div",
    { class: "two", "data-key": "items" },
    h("div"),
    addForm(surface.name, (changed) => (onSurface(changed), redraw())),
  );
  morphChildren(columns.firstChild, [itemsTable(surface, spare, act)]);
  return [
    h(
      "div",
      { class: "title" },
      h("p", null, h("a", { href: "#" }, `Back to ${surface.name}`)),
      h("h1", null, "Items"),
      h(
        "p",
        { class: "m" },
        `${plural(active.length, "item")} for ${plural(surface.n_positions, "position")}${hint}.`,
      ),
    ),
    h("p", { class: message.isError ? "outcome refused" : "outcome", role: "status" }, message.text),
    columns,
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
          on: { click: () => act(() => addItems(surface.name, [item.name]), `${item.name} was restored.`) },
        },
        "Restore",
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
                `${item.name} was retired; its counts are kept.`,
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
    h("td", { class: item.retired ? "m" : null }, item.retired ? "Retired" : "Active"),
    h("td", { class: "r" }, button),
  );
}

function addForm(name, onSurface) {
  const submit = (event) => {
    event.preventDefault();
    const sent = event.currentTarget;
    const items = lines(new FormData(sent).get("added"));
    submitForm(sent, async () => {
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
      "One per line. New items are explored at once.",
    ),
    outcomeMessage(),
    h("div", { class: "actions" }, h("button", { type: "submit", class: "main" }, "Add items")),
  );
}
