// The page of one surface: its feed, its views, and what stands around them.

import { access, read, SERVICE, surfacePage, surfacePath, surfaces } from "./api.js";
import { showStatus, silence } from "./banner.js";
import { drawCharts } from "./chart.js";
import { choices } from "./choices.js";
import { h } from "./element.js";
import { explainView, forgetExplanation } from "./explain-view.js";
import { isEmpty, isEqual } from "./facts.js";
import { Feed } from "./feed.js";
import { itemsView } from "./items-view.js";
import { keyView } from "./key-view.js";
import { key } from "./key.js";
import { morphChildren } from "./morph.js";
import { fair } from "./section-fair.js";
import { healthy } from "./section-healthy.js";
import { learned } from "./section-learned.js";
import { shown } from "./section-shown.js";
import { guarded } from "./section.js";
import { working } from "./section-working.js";
import { loading, unknown, unreachable } from "./states.js";
import { summary } from "./summary.js";
import { markScrollBoxes } from "./tables.js";
import { duration, plural, utilityName } from "./words.js";

const name = decoded(location.pathname.split("/").filter(Boolean).at(-1));
const byId = (id) => document.getElementById(id);
const main = byId("main");

let allowed = null; // what the key may do; null until it is known
let definition = null; // of the surface, for the view of its items
const feed = new Feed(name, () => {
  if (!allowed && feed.state && !feed.problem) learnRights(); // they could not be told before
  soon();
});
choices.onChange = () => soon();

// Part of an address, which may have been typed by anybody.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Renders at most once a frame, however much arrives; in a hidden tab there are no frames and nothing to see.
let planned = false;
function soon() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    render();
  });
}

function render() {
  document.title = `${name} · banditrank`;
  morphChildren(main, view().flat(Infinity).filter(Boolean));
  morphChildren(byId("footer"), footer());
  drawCharts(main);
  markScrollBoxes(main);
  showStatus(feed);
}

function view() {
  if (needsKey()) return keyView(key.get() !== null, begin);
  const ranking = /^#ranking=(.*)$/.exec(location.hash);
  if (ranking) return explainView(decoded(ranking[1]), name, soon);
  if (location.hash === "#items" && mayAdminister()) return items();
  if (feed.state) return dashboard(feed.state);
  if (feed.problem?.isUnknown) return unknown(name);
  if (feed.problem) return unreachable(name, feed.problem);
  return loading(name, (Date.now() - feed.started) / 1000);
}

const needsKey = () => (allowed !== null && !allowed.rights.includes("read")) || feed.problem?.needsKey;
const mayAdminister = () => allowed?.rights.includes("administer") ?? false;

function dashboard(state) {
  const silent = silence(feed);
  const empty = isEmpty(state);
  return [
    title(state),
    !empty && summary(state, silent),
    guarded("shown", "What is shown now?", () => shown(state)),
    guarded("learned", "What has been learned?", () => learned(state)),
    guarded("working", "Is it working?", () => working(state, feed.series, feed.seriesProblem)),
    guarded("fair", "Is it fair?", () => fair(state)),
    guarded("healthy", "Is it healthy?", () => healthy(state, silent)),
  ];
}

function title(state) {
  const { surface } = state;
  const facts = [
    isEqual(state) ? `Equal treatment, ${utilityName(surface.utility)}` : "Personalized treatment",
    surface.policy,
    plural(surface.items.length - (surface.retired?.length ?? 0), "item"),
    plural(surface.n_positions, "position"),
    plural(surface.types.length, "user type"),
    `${duration(surface.window_s)} attribution window`,
    `${plural(state.rounds, "visit")} counted`,
    state.truth && "Demo: true values known",
  ].filter(Boolean);
  return h(
    "div",
    { class: "title" },
    h("h1", null, name),
    h(
      "div",
      { class: "facts" },
      facts.map((fact) => h("span", null, fact)),
    ),
  );
}

function items() {
  if (definition) return itemsView(definition, (changed) => (definition = changed), soon);
  readDefinition();
  return loading(name, 0).slice(0, 1);
}

// One question at a time: an answer that comes late must not undo what was changed since.
let reading = false;
async function readDefinition() {
  if (reading) return;
  reading = true;
  try {
    definition = await read(surfacePath(name));
  } catch {
    location.hash = ""; // the page of the surface says what is wrong
  }
  reading = false;
  soon();
}

function footer() {
  const links = [
    ["#ranking=", "Explain a ranking"],
    ...(mayAdminister() ? [["#items", "Add or retire items"]] : []),
    [new URL("docs", SERVICE).href, "API reference"],
  ].map(([href, words]) => h("a", { href }, words));
  return [
    h("span", null, "Intervals are 95%. Times are UTC."),
    ...links,
    feed.state && h("button", { type: "button", class: "plain", on: { click: download } }, "Download JSON"),
    key.get() && h("button", { type: "button", class: "plain", on: { click: forget } }, "Forget the key"),
  ].filter(Boolean);
}

function download() {
  const content = JSON.stringify({ dashboard: feed.state, series: feed.series }, null, 1);
  const address = URL.createObjectURL(new Blob([content], { type: "application/json" }));
  h("a", { href: address, download: `${name}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function forget() {
  key.forget();
  location.reload();
}

async function begin() {
  await learnRights();
  if (allowed && !allowed.rights.includes("read")) return;
  feed.problem = null;
  feed.start();
}

let learning = false;
async function learnRights() {
  if (learning) return;
  learning = true;
  try {
    allowed = await access();
    if (allowed.rights.includes("read")) fillChoice();
  } catch {
    allowed = null; // the feed will say what is wrong
  }
  learning = false;
  soon();
}

async function fillChoice() {
  const select = byId("surface");
  const names = await surfaces().then(
    (all) => all.map((one) => one.name),
    () => [name],
  );
  if (!names.includes(name)) names.unshift(name);
  select.replaceChildren(...names.map((one) => h("option", { value: one, selected: one === name }, one)));
}

byId("surface").append(h("option", { value: name, selected: true }, name));
byId("surface").addEventListener("change", (event) => (location.href = surfacePage(event.target.value)));
byId("pause").addEventListener("click", (event) => {
  const paused = event.currentTarget.getAttribute("aria-pressed") !== "true";
  event.currentTarget.setAttribute("aria-pressed", paused);
  event.currentTarget.textContent = paused ? "Resume" : "Pause";
  feed.pause(paused);
});

// Another view is another page: it is looked at from its top, and keyboards start there.
const VIEWS = /^#(ranking=|items$)/;
addEventListener("hashchange", (event) => {
  const [before, after] = [event.oldURL, event.newURL].map((url) => VIEWS.test(new URL(url).hash));
  if (new URL(event.newURL).hash === "#items") definition = null;
  forgetExplanation();
  render();
  if (before || after) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
});

// Every second: how long ago, and when next. Only while that changes something are sections made anew.
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  if (silence(feed) || (!feed.state && !feed.problem)) render();
  else showStatus(feed);
}, 1000);

new ResizeObserver(() => {
  drawCharts(main);
  markScrollBoxes(main);
}).observe(main);

render();
begin();
