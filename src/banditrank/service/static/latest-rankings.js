// The table of the latest rankings, with their reasons and feedback.

import { h } from "./element.js";
import { typeName } from "./markers.js";
import { feedbackText, formatRanking, reasonText } from "./sentences.js";
import { scrollBox } from "./tables.js";
import { moment, number } from "./format.js";

const ROWS = 6;

// The rows that are shown; they do not change while the table is used, so that links stay in place.
let shown = null;

export function latestRankings(state) {
  const rankings = state.latest_rankings ?? [];
  if (!rankings.length) return null;
  const box = document.querySelector("[data-key=latest]");
  const isInUse = box?.matches(":hover, :focus-within") ?? false;
  if (!isInUse || !shown || shown.surface !== state.surface.name)
    shown = { surface: state.surface.name, rankings, age: state.counts_age_seconds };
  const head = ["Time", "User type", "Shown, position 1 first", "Reason", "Id", "Feedback"];
  return h(
    "div",
    { "data-key": "latest" },
    h(
      "div",
      { class: "ch" },
      h("h3", null, "Latest rankings"),
      h(
        "span",
        { class: "m s" },
        isInUse ? "paused while you use the table" : `made from counts ${number(shown.age ?? 0, 1)} s old`,
      ),
    ),
    scrollBox(
      "Latest rankings",
      h(
        "table",
        { class: "stack latest" },
        h("caption", { class: "vh" }, "Latest rankings, newest first"),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            head.map((cell) => h("th", { scope: "col" }, cell)),
          ),
        ),
        h(
          "tbody",
          null,
          shown.rankings.slice(0, ROWS).map((one) => latestRow(state, one)),
        ),
      ),
    ),
  );
}

function latestRow(state, one) {
  return h(
    "tr",
    { "data-key": `r-${one.id}` },
    h("td", { class: "m nw" }, h("time", { datetime: one.at }, moment(Date.parse(one.at)))),
    h("td", null, typeName(state, one.user_type, true)),
    h("td", { class: "w" }, formatRanking(state, one.ranking)),
    h("td", { class: one.reason === "best" ? "m" : null }, reasonText(state, one)),
    h(
      "td",
      { class: "id" },
      h(
        "a",
        {
          href: `#ranking=${encodeURIComponent(one.id)}`,
          class: "mono nw",
          "aria-label": `Explain ranking ${shortId(one.id)}`,
        },
        shortId(one.id),
      ),
    ),
    h("td", { class: one.feedback === "pending" ? "m" : null }, feedbackText(state, one)),
  );
}

// The end of a long id; ids of the same time have the same beginning.
const shortId = (id) => (id.length > 12 ? `…${id.slice(-8)}` : id);
