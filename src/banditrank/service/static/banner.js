// The connection status and the banner: live, paused, stale or disconnected, and restarts of the service.

import { h } from "./element.js";
import { BANNER_SECONDS, STALE_SECONDS } from "./feed.js";
import { morphChildren } from "./morph.js";
import { clock, duration, plural, whole } from "./format.js";
import { estimatesAge, hasEstimates } from "./selectors.js";

const STARTED = "service started"; // text of the event in the time series
const RESTART_BANNER_SECONDS = 300;
const OLD_BANNER_SECONDS = 60; // age of estimates; those of large surfaces are computed every 30 s or so
let dismissed = null; // time of the restart whose banner was dismissed

const byId = (id) => document.getElementById(id);

// Shows the status of a feed or a surface list.
export function showStatus(feed) {
  setText(byId("updated"), updateText(feed));
  setText(byId("announcement"), announcementText(feed));
  morphChildren(byId("banner"), [banner(feed)].filter(Boolean));
}

// Screen readers announce every write, so text that is the same is not written again.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Seconds without a sign of the service; 0 below the limit.
export function silence(feed, now = Date.now()) {
  const seconds = feed.silentFor(now);
  return seconds >= STALE_SECONDS ? seconds : 0;
}

const elapsed = (feed, now) => (feed.receivedAt ? (now - feed.receivedAt) / 1000 : 0);

const ageOfEstimates = (feed, now = Date.now()) => estimatesAge(feed.state, elapsed(feed, now));

const lacksEstimates = (state) => state.rounds > 0 && !hasEstimates(state);

function updateText(feed, now = Date.now()) {
  if (!feed.state) return feed.error ? "Not connected" : "Connecting";
  const at = `${clock(Date.parse(feed.state.as_of))} UTC`;
  if (feed.paused) return `Paused at ${at}`;
  const silent = silence(feed, now);
  if (silent) return `Last update ${at}, no response for ${duration(silent)}`;
  const age = ageOfEstimates(feed, now);
  if (age) return `Updated ${at}, estimates ${duration(age)} old`;
  if (lacksEstimates(feed.state)) return `Updated ${at}, no estimates yet`;
  return `Live, updated ${at}`;
}

const retryText = (feed, now) =>
  feed.nextRetryAt && feed.nextRetryAt > now
    ? `Retrying in ${duration((feed.nextRetryAt - now) / 1000)}.`
    : "Retrying.";

function banner(feed, now = Date.now()) {
  const silent = feed.silentFor(now);
  if (!feed.state) return null;
  if (silent < BANNER_SECONDS)
    return compilingBanner(feed, now) ?? oldEstimatesBanner(feed, now) ?? restartBanner(feed);
  const at = clock(Date.parse(feed.state.as_of));
  if (!feed.error) {
    return box(
      "",
      `No update for ${duration(silent)}.`,
      `Showing data from ${at}. ${retryText(feed, now)}`,
    );
  }
  const shown = `Showing data from ${at}, ${duration(silent)} ago.`;
  const text =
    feed.error.status === 0
      ? `${shown} Rankings may still be served by other replicas. ${retryText(feed, now)}`
      : `${feed.error.message} ${shown} ${retryText(feed, now)}`;
  return box(
    " bad",
    feed.error.status === 0 ? "The service does not respond." : "The service returned an error.",
    text,
  );
}

// The last restart if it is recent by the clock of the service, and was not dismissed; null otherwise.
function restart(feed) {
  const last = feed.series?.events?.findLast((event) => event.text === STARTED);
  if (!last || last.at === dismissed) return null;
  return Date.parse(feed.state.as_of) - Date.parse(last.at) < 1000 * RESTART_BANNER_SECONDS ? last : null;
}

function restartBanner(feed) {
  const last = restart(feed);
  if (!last) return null;
  const dismiss = () => {
    dismissed = last.at;
    byId("main").focus({ preventScroll: true }); // the button that has the focus is removed
    showStatus(feed);
  };
  return box(
    "",
    `The service restarted at ${clock(Date.parse(last.at))}.`,
    "No acknowledged feedback was lost. ",
    h("button", { type: "button", class: "plain", on: { click: dismiss } }, "Dismiss"),
  );
}

const COMPILING = {
  "this-surface": "The service is compiling code for this surface.",
  "another-surface": "The service is compiling code for another surface.",
};

// Compilation takes up to a minute; rankings are served and visits are counted meanwhile.
function compilingBanner(feed, now) {
  const headline = COMPILING[feed.state.compiling];
  if (!headline) return null;
  const started = feed.state.compiling_seconds;
  const since =
    typeof started === "number" ? ` It started ${duration(started + elapsed(feed, now))} ago.` : "";
  const basis = ageOfEstimates(feed, now) || lacksEstimates(feed.state) ? ` ${basisText(feed.state)}` : "";
  return box("", headline, `This takes up to a minute. Rankings continue.${since}${basis}`);
}

function oldEstimatesBanner(feed, now) {
  const age = ageOfEstimates(feed, now);
  if (age < OLD_BANNER_SECONDS) return null;
  return box("", `The estimates are ${duration(age)} old.`, basisText(feed.state));
}

// Which of the counted visits the estimates are of.
function basisText({ estimated_from: basis, rounds }) {
  const counted = plural(rounds, "visit");
  const were = rounds === 1 ? "was" : "were";
  if (!basis?.rounds) return `${counted} ${were} counted; there are no estimates yet.`;
  return `The estimates are of ${whole(basis.rounds)} of ${counted} counted.`;
}

const box = (kind, headline, ...content) =>
  h("div", { class: `banner${kind}`, "data-key": `banner${kind}` }, h("b", null, headline), " ", ...content);

// For screen readers: changes only with the status, not every second.
function announcementText(feed, now = Date.now()) {
  if (!feed.state) return "";
  if (feed.paused) return "Paused.";
  if (!silence(feed, now))
    return (
      COMPILING[feed.state.compiling] ??
      (ageOfEstimates(feed, now) >= OLD_BANNER_SECONDS
        ? "The estimates are old."
        : restart(feed)
          ? "The service restarted."
          : "")
    );
  return feed.silentFor(now) < BANNER_SECONDS
    ? "No response from the service."
    : "The service does not respond.";
}
