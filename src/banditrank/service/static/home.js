// The list of surfaces, and creating one.

import { SERVICE, surfacePage } from "./api.js";
import { showStatus } from "./banner.js";
import { postCommand } from "./command.js";
import { createView } from "./create-view.js";
import { h } from "./element.js";
import { keyView } from "./key-view.js";
import { key } from "./key.js";
import { Listing } from "./listing.js";
import { morphChildren } from "./morph.js";
import { nothing, panelProblem } from "./section.js";
import { markScrollBoxes, scrollBox } from "./tables.js";
import { plural, utilityName, whole } from "./words.js";

const SLOW_SECONDS = 10;
const byId = (id) => document.getElementById(id);

const listing = new Listing(() => render());

function render() {
  morphChildren(byId("main"), view().flat(Infinity).filter(Boolean));
  morphChildren(byId("footer"), footer());
  markScrollBoxes(byId("main"));
  showStatus(listing);
}

const mayAdminister = () => listing.allowed?.rights.includes("administer") ?? false;

function view() {
  const { allowed, problem, started, surfaces } = listing;
  if ((allowed && !allowed.rights.includes("read")) || problem?.needsKey)
    return keyView(key.get() !== null, () => listing.ask());
  if (location.hash === "#create" && mayAdminister()) return createView();
  const head = h(
    "div",
    { class: "title" },
    h("h1", null, "Surfaces"),
    h("p", { class: "m" }, "Each is one place where items are ranked, and learns by itself."),
  );
  if (!surfaces && problem) return [head, panelProblem(problem)];
  if (!surfaces)
    return [
      head,
      nothing(Date.now() - started > SLOW_SECONDS * 1000 ? "The service answers slowly." : "Loading…"),
    ];
  return [
    head,
    surfaces.length ? list(surfaces) : empty(),
    mayAdminister() &&
      h("p", { class: "after" }, h("a", { class: "button", href: "#create" }, "Create a surface")),
  ];
}

const empty = () =>
  nothing(
    "There is no surface yet. The list shows each with its treatment and its visits.",
    postCommand("v1/surfaces", {
      name: "ads",
      items: ["ad-1", "ad-2", "ad-3"],
      n_positions: 2,
      user_types: ["new", "returning"],
    }),
  );

function list(surfaces) {
  const head = ["Surface", "Treatment", "Items", "Positions", "User types", "Policy", "Visits counted"];
  const numeric = [2, 3, 4, 6];
  return scrollBox(
    "Surfaces",
    h(
      "table",
      { class: "surfaces stack" },
      h("caption", { class: "vh" }, "All surfaces"),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          head.map((cell, i) => h("th", { scope: "col", class: numeric.includes(i) ? "r" : null }, cell)),
        ),
      ),
      h(
        "tbody",
        null,
        surfaces.map((one) =>
          h(
            "tr",
            { "data-key": `surface-${one.name}` },
            h("th", { scope: "row", class: "w" }, h("a", { href: surfacePage(one.name) }, one.name)),
            h(
              "td",
              { class: "w" },
              one.treatment === "equal" ? `Equal, ${utilityName(one.utility)}` : "Personalized",
            ),
            cell(one.items.filter((item) => !item.retired).length, "item"),
            cell(one.n_positions, "position"),
            cell(one.user_types.length, "user type"),
            h("td", { class: "m" }, one.policy),
            cell(one.rounds, "visit"),
          ),
        ),
      ),
    ),
  );
}

// On a narrow page there is no head to say what a number counts.
const cell = (count, what) =>
  h(
    "td",
    { class: "r" },
    whole(count),
    h("span", { class: "on-narrow" }, plural(count, what).replace(/^[\d,]+/, "")),
  );

function footer() {
  const forget = () => (key.forget(), location.reload());
  return [
    h("span", null, "Times are UTC."),
    h("a", { href: new URL("docs", SERVICE).href }, "API reference"),
    key.get() && h("button", { type: "button", class: "plain", on: { click: forget } }, "Forget the key"),
  ].filter(Boolean);
}

addEventListener("hashchange", () => {
  render();
  scrollTo(0, 0);
  byId("main").focus({ preventScroll: true });
});
new ResizeObserver(() => markScrollBoxes(byId("main"))).observe(byId("main"));

// Every second: how long ago, and whether it takes long.
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  if (listing.surfaces || listing.problem) showStatus(listing);
  else render();
}, 1000);

render();
