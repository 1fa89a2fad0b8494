// The page that lists all surfaces, and creates one.

import { BASE_URL, surfacePage } from "./api.js";
import { showStatus } from "./banner.js";
import { curlPost } from "./curl-command.js";
import { createView } from "./create-view.js";
import { h } from "./element.js";
import { apiKeyView } from "./api-key-view.js";
import { apiKey } from "./api-key.js";
import { SurfaceList } from "./surface-list.js";
import { morphChildren } from "./morph.js";
import { emptyState, panelError } from "./section.js";
import { scrollBox, updateScrollBoxes } from "./tables.js";
import { plural, utilityName, whole } from "./format.js";

const TREATMENTS = { personalized: "Personalized", equal: "Equal", "equal-lottery": "Lottery" };

const SLOW_SECONDS = 10;
const byId = (id) => document.getElementById(id);

const surfaceList = new SurfaceList(() => render());

function render() {
  morphChildren(byId("main"), view().flat(Infinity).filter(Boolean));
  morphChildren(byId("footer"), footer());
  updateScrollBoxes(byId("main"));
  showStatus(surfaceList);
}

const mayAdminister = () => surfaceList.access?.rights.includes("administer") ?? false;

function view() {
  const { access, error, started, surfaces } = surfaceList;
  if ((access && !access.rights.includes("read")) || error?.needsKey)
    return apiKeyView(apiKey.get() !== null, () => surfaceList.refresh());
  if (location.hash === "#create" && mayAdminister()) return createView();
  const head = h(
    "div",
    { class: "title" },
    h("h1", null, "Surfaces"),
    h("p", { class: "m" }, "Each surface is one place where items are ranked."),
  );
  if (!surfaces && error) return [head, panelError(error)];
  if (!surfaces)
    return [
      head,
      emptyState(
        Date.now() - started > SLOW_SECONDS * 1000 ? "The service is slow to respond." : "Loading…",
      ),
    ];
  return [
    head,
    surfaceList.isLoading && emptyState("The service is compiling code. More surfaces may follow."),
    surfaces.length ? list(surfaces) : !surfaceList.isLoading && empty(),
    mayAdminister() &&
      h("p", { class: "after" }, h("a", { class: "button", href: "#create" }, "Create a surface")),
  ];
}

const empty = () =>
  emptyState(
    "There are no surfaces yet. Create the first one:",
    curlPost("v1/surfaces", {
      name: "ads",
      items: ["ad-1", "ad-2", "ad-3"],
      n_positions: 2,
      user_types: ["new", "returning"],
    }),
  );

function list(surfaces) {
  const head = ["Surface", "Treatment", "Items", "Positions", "User types", "Policy", "Counted visits"];
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
              TREATMENTS[one.treatment] +
                (one.treatment === "personalized" ? "" : `, ${utilityName(one.utility)}`),
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

// A number with its unit, which is shown on narrow pages, where the table has no head.
const cell = (count, unit) =>
  h(
    "td",
    { class: "r" },
    whole(count),
    h("span", { class: "on-narrow" }, plural(count, unit).replace(/^[\d,]+/, "")),
  );

function footer() {
  const removeKey = () => (apiKey.remove(), location.reload());
  return [
    h("span", null, "Times are UTC."),
    h("a", { href: new URL("docs", BASE_URL).href }, "API reference"),
    apiKey.get() &&
      h("button", { type: "button", class: "plain", on: { click: removeKey } }, "Remove the API key"),
  ].filter(Boolean);
}

addEventListener("hashchange", () => {
  render();
  scrollTo(0, 0);
  byId("main").focus({ preventScroll: true });
});
new ResizeObserver(() => updateScrollBoxes(byId("main"))).observe(byId("main"));

// Updates ages and the loading text every second.
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  if (surfaceList.surfaces || surfaceList.error) showStatus(surfaceList);
  else render();
}, 1000);

render();
