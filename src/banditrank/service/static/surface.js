// The dashboard page of one surface.

import {
  BASE_URL,
  fetchAccess,
  fetchExperiment,
  fetchJson,
  fetchSurfaces,
  surfacePage,
  surfacePath,
} from "./api.js";
import { showStatus, silence } from "./banner.js";
import { drawCharts } from "./chart.js";
import { uiState } from "./ui-state.js";
import { h } from "./element.js";
import { clearExplanation, explainView } from "./explain-view.js";
import { estimatesAge, isEmpty, isEqual, isLottery } from "./selectors.js";
import { ExperimentFeed } from "./experiment-feed.js";
import { Feed } from "./feed.js";
import { itemsView } from "./items-view.js";
import { apiKeyView } from "./api-key-view.js";
import { apiKey } from "./api-key.js";
import { morphChildren } from "./morph.js";
import { experimentSection } from "./section-experiment.js";
import { fairSection } from "./section-fair.js";
import { healthySection } from "./section-healthy.js";
import { learnedSection } from "./section-learned.js";
import { shownSection } from "./section-shown.js";
import { errorBoundary } from "./section.js";
import { workingSection } from "./section-working.js";
import { compilingView, loadingView, unknownSurfaceView, unreachableView } from "./placeholders.js";
import { summary } from "./summary.js";
import { updateScrollBoxes } from "./tables.js";
import { duration, plural, utilityName } from "./format.js";

const name = decode(location.pathname.split("/").filter(Boolean).at(-1));
const byId = (id) => document.getElementById(id);
const main = byId("main");

let access = null; // rights of the key; null until they are loaded
let definition = null; // settings of the surface, for the view of its items
let showsSilence = false; // whether the page says that the service does not respond
const feed = new Feed(name, () => {
  if (!access && feed.state && !feed.error) loadAccess(); // after an earlier failure
  scheduleRender();
});
const experiment = new ExperimentFeed(() => fetchExperiment(name), scheduleRender);
uiState.onChange = () => scheduleRender();

// Decodes a part of the URL, which may be malformed.
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Renders at most once per frame.
let isScheduled = false;
function scheduleRender() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    render();
  });
}

function render() {
  document.title = `${name} · banditrank`;
  morphChildren(main, view().flat(Infinity).filter(Boolean));
  morphChildren(byId("footer"), footer());
  drawCharts(main);
  updateScrollBoxes(main);
  showStatus(feed);
}

function view() {
  if (needsKey()) return apiKeyView(apiKey.get() !== null, begin);
  const ranking = /^#ranking=(.*)$/.exec(location.hash);
  if (ranking) return explainView(decode(ranking[1]), name, scheduleRender);
  if (location.hash === "#items" && mayAdminister()) return items();
  if (feed.state) return dashboard(feed.state);
  if (feed.error?.isUnknown) return unknownSurfaceView(name);
  if (feed.error?.isCompiling) return compilingView(name);
  if (feed.error) return unreachableView(name, feed.error);
  return loadingView(name, (Date.now() - feed.started) / 1000);
}

const needsKey = () => (access !== null && !access.rights.includes("read")) || feed.error?.needsKey;
const mayAdminister = () => access?.rights.includes("administer") ?? false;

function dashboard(state) {
  const silent = silence(feed);
  showsSilence = silent > 0;
  const empty = isEmpty(state);
  return [
    title(state),
    !empty && summary(state, silent),
    errorBoundary("shown", () => shownSection(state)),
    errorBoundary("learned", () => learnedSection(state)),
    errorBoundary("working", () => workingSection(state, feed.series, feed.seriesError)),
    state.surface.experiment &&
      errorBoundary("experiment", () => experimentSection(experiment.update(state), experiment.error)),
    errorBoundary("fair", () => fairSection(state)),
    errorBoundary("healthy", () => healthySection(state, silent)),
  ];
}

function title(state) {
  const { surface } = state;
  const facts = [
    isLottery(state)
      ? `Equal treatment by a lottery, ${utilityName(surface.utility)}`
      : isEqual(state)
        ? `Equal treatment, ${utilityName(surface.utility)}`
        : "Personalized treatment",
    surface.policy,
    plural(surface.items.length - (surface.retired?.length ?? 0), "item"),
    plural(surface.n_positions, "position"),
    plural(surface.user_types.length, "user type"),
    `${duration(surface.attribution_seconds)} attribution window`,
    `${plural(state.rounds, "visit")} counted`,
    estimatesAge(state) > 0 && `estimates of ${plural(state.estimated_from.rounds, "visit")}`,
    state.has_true_values && "Demo: true values known",
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
  if (definition) return itemsView(definition, (changed) => (definition = changed), scheduleRender);
  loadDefinition();
  return loadingView(name, 0).slice(0, 1);
}

// One request at a time: a late response must not overwrite a newer change.
let isLoadingDefinition = false;
async function loadDefinition() {
  if (isLoadingDefinition) return;
  isLoadingDefinition = true;
  try {
    definition = await fetchJson(surfacePath(name));
  } catch {
    location.hash = ""; // the dashboard shows the error
  }
  isLoadingDefinition = false;
  scheduleRender();
}

function footer() {
  const links = [
    ["#ranking=", "Explain a ranking"],
    ...(mayAdminister() ? [["#items", "Add or retire items"]] : []),
    [new URL("docs", BASE_URL).href, "API reference"],
  ].map(([href, label]) => h("a", { href }, label));
  return [
    h("span", null, "Intervals are 95%. Times are UTC."),
    ...links,
    feed.state && h("button", { type: "button", class: "plain", on: { click: download } }, "Download JSON"),
    apiKey.get() &&
      h("button", { type: "button", class: "plain", on: { click: removeKey } }, "Remove the API key"),
  ].filter(Boolean);
}

function download() {
  const content = JSON.stringify({ dashboard: feed.state, series: feed.series }, null, 1);
  const address = URL.createObjectURL(new Blob([content], { type: "application/json" }));
  h("a", { href: address, download: `${name}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function removeKey() {
  apiKey.remove();
  location.reload();
}

async function begin() {
  await loadAccess();
  if (access && !access.rights.includes("read")) return;
  feed.error = null;
  feed.start();
}

let isLoadingAccess = false;
async function loadAccess() {
  if (isLoadingAccess) return;
  isLoadingAccess = true;
  try {
    access = await fetchAccess();
    if (access.rights.includes("read")) fillSurfaceMenu();
  } catch {
    access = null; // the feed shows the error
  }
  isLoadingAccess = false;
  scheduleRender();
}

async function fillSurfaceMenu() {
  const select = byId("surface");
  const names = await fetchSurfaces().then(
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

// A change of view scrolls to the top and moves the focus there.
const VIEWS = /^#(ranking=|items$)/;
addEventListener("hashchange", (event) => {
  const [before, after] = [event.oldURL, event.newURL].map((url) => VIEWS.test(new URL(url).hash));
  if (new URL(event.newURL).hash === "#items") definition = null;
  clearExplanation();
  render();
  if (before || after) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
});

// Updates ages every second; renders all only while the service is silent or loading, and after a silence,
// which ends without an event if nothing changed meanwhile.
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  if (silence(feed) || showsSilence || (!feed.state && !feed.error)) render();
  else showStatus(feed);
}, 1000);

new ResizeObserver(() => {
  drawCharts(main);
  updateScrollBoxes(main);
}).observe(main);

render();
begin();
