// What the page says of itself: live, paused, old, or cut off.

import { h } from "./element.js";
import { BANNER_SECONDS, STALE_SECONDS } from "./feed.js";
import { clock, duration } from "./words.js";

// For how many seconds the service is silent, 0 while that means nothing yet.
export function silence(feed, now = Date.now()) {
  const seconds = feed.silentFor(now);
  return seconds >= STALE_SECONDS ? seconds : 0;
}

export function updatedWords(feed, now = Date.now()) {
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

export function banner(feed, now = Date.now()) {
  const silent = feed.silentFor(now);
  if (!feed.state || silent < BANNER_SECONDS) return null;
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

const box = (kind, headline, words) =>
  h("div", { class: `banner${kind}`, "data-key": `banner${kind}` }, h("b", null, headline), " ", words);

// For those who hear the page: once when it changes, and not every second.
export function announcementWords(feed, now = Date.now()) {
  if (!feed.state) return "";
  if (feed.paused) return "Paused.";
  if (!silence(feed, now)) return "";
  return feed.silentFor(now) < BANNER_SECONDS ? "The service is silent." : "The service does not answer.";
}
