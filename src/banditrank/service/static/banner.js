// What the page says of itself: live, paused, old, or cut off; and of the service that it restarted.

import { h } from "./element.js";
import { BANNER_SECONDS, STALE_SECONDS } from "./feed.js";
import { morphChildren } from "./morph.js";
import { clock, duration } from "./words.js";

const STARTED = "service started"; // as the engine notes it of a surface that had learned before
const NEWS_SECONDS = 300; // for which a restart is worth a banner
let dismissed = null; // when the restart was that somebody has read of

const byId = (id) => document.getElementById(id);

// Of a feed, or of whatever else is told now and then.
export function showStatus(feed) {
  setText(byId("updated"), updatedWords(feed));
  setText(byId("announcement"), announcementWords(feed));
  morphChildren(byId("banner"), [banner(feed)].filter(Boolean));
}

// What stays the same is not written again: it would be read out again.
function setText(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

// For how many seconds the service is silent, 0 while that means nothing yet.
export function silence(feed, now = Date.now()) {
  const seconds = feed.silentFor(now);
  return seconds >= STALE_SECONDS ? seconds : 0;
}

function updatedWords(feed, now = Date.now()) {
  if (!feed.state) return feed.problem ? "Not connected" : "Connecting";
  const at = `${clock(Date.parse(feed.state.as_of))} UTC`;
  if (feed.paused) return `Paused at ${at}`;
  const silent = silence(feed, now);
  if (silent) return `Last update ${at}, no answer for ${duration(silent)}`;
  return `Live, updated ${at}`;
}

const tryWords = (feed, now) =>
  feed.nextTry && feed.nextTry > now
    ? `Trying again in ${duration((feed.nextTry - now) / 1000)}.`
    : "Trying again.";

function banner(feed, now = Date.now()) {
  const silent = feed.silentFor(now);
  if (!feed.state) return null;
  if (silent < BANNER_SECONDS) return restartBanner(feed);
  const at = clock(Date.parse(feed.state.as_of));
  if (!feed.problem) {
    return box(
      "",
      `No update for ${duration(silent)}.`,
      `Showing the state of ${at}. ${tryWords(feed, now)}`,
    );
  }
  const shown = `Showing the state of ${at}, ${duration(silent)} ago.`;
  const words =
    feed.problem.status === 0
      ? `${shown} Rankings may still be served by other replicas. ${tryWords(feed, now)}`
      : `${feed.problem.message} ${shown} ${tryWords(feed, now)}`;
  return box(
    " bad",
    feed.problem.status === 0 ? "The service does not answer." : "The service cannot tell.",
    words,
  );
}

// The last restart while it is news, by the clock of the service; null if there is none.
function restart(feed) {
  const last = feed.series?.events?.findLast((event) => event.t === STARTED);
  if (!last || last.at === dismissed) return null;
  return Date.parse(feed.state.as_of) - Date.parse(last.at) < 1000 * NEWS_SECONDS ? last : null;
}

function restartBanner(feed) {
  const last = restart(feed);
  if (!last) return null;
  const dismiss = () => {
    dismissed = last.at;
    byId("main").focus({ preventScroll: true }); // the button goes, and with it the place of the keyboard
    showStatus(feed);
  };
  return box(
    "",
    `The service restarted at ${clock(Date.parse(last.at))}.`,
    "All acknowledged feedback is here. ",
    h("button", { type: "button", class: "plain", on: { click: dismiss } }, "Dismiss"),
  );
}

const box = (kind, headline, ...words) =>
  h("div", { class: `banner${kind}`, "data-key": `banner${kind}` }, h("b", null, headline), " ", ...words);

// For those who hear the page: once when it changes, and not every second.
function announcementWords(feed, now = Date.now()) {
  if (!feed.state) return "";
  if (feed.paused) return "Paused.";
  if (!silence(feed, now)) return restart(feed) ? "The service restarted." : "";
  return feed.silentFor(now) < BANNER_SECONDS ? "The service is silent." : "The service does not answer.";
}
