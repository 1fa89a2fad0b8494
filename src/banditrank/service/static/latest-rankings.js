// The latest rankings: to whom, what, why, and what became of them.

import { h } from "./element.js";
import { typeName } from "./marks.js";
import { feedbackWords, rankingWords, reasonWords } from "./sentences.js";
import { scrollBox } from "./tables.js";
import { moment, number } from "./words.js";

const ROWS = 6;

// While someone is in the table it stands still: a link that runs away cannot be followed.
let held = null;

export function latestRankings(state) {
  const recent = state.recent ?? [];
  if (!recent.length) return null;
  const box = document.querySelector("[data-key=latest]");
  const within = box?.matches(":hover, :focus-within") ?? false;
  if (!within || !held || held.surface !== state.surface.name)
    held = { surface: state.surface.name, recent, age: state.counts_age_s };
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
        within ? "held while you are in the table" : `made from counts ${number(held.age ?? 0, 1)} s old`,
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
          held.recent.slice(0, ROWS).map((one) => latestRow(state, one)),
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
    h("td", null, typeName(state, one.type, true)),
    h("td", { class: "w" }, rankingWords(state, one.ranking)),
    h("td", { class: one.why === "best" ? "m" : null }, reasonWords(state, one)),
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
    h("td", { class: one.feedback === "waiting" ? "m" : null }, feedbackWords(state, one)),
  );
}

// Ids are long, and those of one moment begin alike.
const shortId = (id) => (id.length > 12 ? `…${id.slice(-8)}` : id);
