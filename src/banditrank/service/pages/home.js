// The list of surfaces, and creating one.

import { access, SERVICE, surfacePage, surfaces } from "./api.js";
import { createView } from "./create-view.js";
import { h } from "./element.js";
import { keyView } from "./key-view.js";
import { key } from "./key.js";
import { morphChildren } from "./morph.js";
import { nothing, panelProblem } from "./section.js";
import { markScrollBoxes, scrollBox } from "./tables.js";
import { clock, plural, utilityName, whole } from "./words.js";

const SECONDS = 5; // between questions, while someone looks
const SLOW_SECONDS = 10;
const byId = (id) => document.getElementById(id);

let allowed = null;
let listed = null;
let problem = null;
let answered = null;
const started = Date.now();

function render() {
  morphChildren(byId("main"), view().flat(Infinity).filter(Boolean));
  morphChildren(byId("footer"), footer());
  markScrollBoxes(byId("main"));
  const at = answered && `${clock(answered)} UTC`;
  byId("updated").textContent = !answered
    ? problem
      ? "Not connected"
      : "Connecting"
    : problem
      ? `Last update ${at}`
      : `Live, updated ${at}`;
  byId("announcement").textContent = problem && listed ? "The service does not answer." : "";
  const words = `Showing the state of ${answered ? clock(answered) : ""}. Trying again every ${SECONDS} s.`;
  const box = h("div", { class: "banner bad" }, h("b", null, problem?.message ?? ""), " ", words);
  morphChildren(byId("banner"), problem && listed ? [box] : []);
}

const mayAdminister = () => allowed?.rights.includes("administer") ?? false;

function view() {
  if ((allowed && !allowed.rights.includes("read")) || problem?.needsKey)
    return keyView(key.get() !== null, update);
  if (location.hash === "#create" && mayAdminister()) return createView();
  const head = h(
    "div",
    { class: "title" },
    h("h1", null, "Surfaces"),
    h("p", { class: "m" }, "Each is one place where items are ranked, and learns by itself."),
  );
  if (!listed && problem) return [head, panelProblem(problem)];
  if (!listed)
    return [
      head,
      nothing(Date.now() - started > SLOW_SECONDS * 1000 ? "The service answers slowly." : "Loading…"),
    ];
  return [
    head,
    listed.length ? list() : empty(),
    mayAdminister() &&
      h("p", { class: "after" }, h("a", { class: "button", href: "#create" }, "Create a surface")),
  ];
}

function empty() {
  const body = JSON.stringify({
    name: "ads",
    items: ["ad-1", "ad-2", "ad-3"],
    n_positions: 2,
    user_types: ["new", "returning"],
  });
  return nothing(
    "There is no surface yet. The list shows each with its treatment and its visits.",
    `curl -X POST ${SERVICE.href}v1/surfaces \\\n  -H 'content-type: application/json' \\\n  -d '${body}'`,
  );
}

function list() {
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
        listed.map((one) =>
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

let asking = false;
async function update() {
  if (asking) return;
  asking = true;
  try {
    allowed = await access();
    if (allowed.rights.includes("read")) {
      listed = await surfaces();
      answered = Date.now();
    }
    problem = null;
  } catch (error) {
    problem = error;
  }
  asking = false;
  render();
}

const attend = () => document.visibilityState === "visible" && update();

addEventListener("hashchange", () => {
  render();
  scrollTo(0, 0);
  byId("main").focus({ preventScroll: true });
});
document.addEventListener("visibilitychange", attend);
new ResizeObserver(() => markScrollBoxes(byId("main"))).observe(byId("main"));
setInterval(attend, 1000 * SECONDS);
render();
attend();
