// What is shown now: what each position brings, why these items, what is open, and the latest rankings.

import { surfacePath } from "./api.js";
import { MOST_TYPES } from "./choices.js";
import { postCommand } from "./command.js";
import { h } from "./element.js";
import { isEmpty, isEqual, nowOf, sum, valueOf } from "./facts.js";
import { latestRankings } from "./latest-rankings.js";
import { swatch, typeName } from "./marks.js";
import { nothing, note, section } from "./section.js";
import { oftenWords, shownAnswer, whyShown, whyShownToEveryone } from "./sentences.js";
import { scrollBox } from "./tables.js";
import { number, percent, whole } from "./words.js";

const TITLE = "What is shown now?";

export function shown(state) {
  const latest = latestRankings(state);
  if (isEmpty(state)) {
    const waits = state.recent?.length;
    const answer = waits ? "No ranking has been settled yet." : "No ranking has been asked for.";
    const words = waits
      ? "A ranking counts when its feedback comes or its attribution window closes."
      : "Ask for the first one; any order is as good as another until clicks come in.";
    return section("shown", TITLE, answer, null, nothing(words, waits ? null : askCommand(state)), latest);
  }
  const explained = note(
    "Looks: the share of visits in which a position is looked at. If seen: clicks per look at the item. " +
      "Their product is the clicks expected from that position.",
  );
  return section(
    "shown",
    TITLE,
    shownAnswer(state),
    explained,
    isEqual(state) ? oneCard(state) : cards(state),
    latest,
  );
}

const askCommand = ({ surface }) =>
  postCommand(surfacePath(surface.name, "/rankings"), { user_type: surface.types[0] });

const stressed = (pieces) => pieces.map((piece) => (Array.isArray(piece) ? h("b", null, piece[0]) : piece));

function cards(state) {
  const { types } = state.surface;
  const more = types.length - MOST_TYPES;
  return [
    h(
      "div",
      { class: "cards" },
      types.slice(0, MOST_TYPES).map((_, type) => card(state, type)),
    ),
    more > 0 && note(`Rankings of ${whole(more)} more user types are in the JSON.`),
  ];
}

function card(state, type) {
  const { surface } = state;
  const { ranking } = nowOf(state, type);
  const value = valueOf(state, type);
  const head = ["Position", "Item", "Looks", "If seen", "Clicks"];
  return h(
    "div",
    { class: "card", "data-key": `card-${type}` },
    h(
      "div",
      { class: "ch" },
      h("h3", null, typeName(state, type)),
      h("span", { class: "m s" }, `${percent(state.arrivals[type])} of visits`),
    ),
    h(
      "table",
      { class: ranking.some((item) => surface.items[item].length > 14) ? "slots long" : "slots" },
      h(
        "caption",
        { class: "vh" },
        `Ranking shown to ${surface.types[type]} and the clicks expected from each position`,
      ),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          head.map((cell, i) =>
            h("th", { scope: "col", class: i > 1 ? "r" : null }, i ? cell : h("span", { class: "vh" }, cell)),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        ranking.map((item, position) => {
          const [looks, mean] = [state.positions[type][position].m, state.items[type][item].m];
          return h(
            "tr",
            null,
            h("td", null, h("span", { class: "pos" }, position + 1)),
            h("th", { class: "it", scope: "row" }, surface.items[item]),
            h("td", { class: "r" }, percent(looks)),
            h("td", { class: "r nw" }, `× ${number(mean)}`),
            h("td", { class: "r nw" }, `= ${number(looks * mean)}`),
          );
        }),
      ),
      h(
        "tfoot",
        null,
        h(
          "tr",
          null,
          h("td"),
          h("td", { colspan: 3 }, "Clicks per visit ", h("span", { class: "m nw" }, intervalWords(value))),
          h("td", { class: "r" }, h("b", null, number(value.m))),
        ),
      ),
    ),
    h("p", { class: "why" }, stressed(whyShown(state, type))),
  );
}

const intervalWords = (value) =>
  value.lo === null || value.lo === undefined ? "" : `${number(value.lo)}–${number(value.hi)}`;

function oneCard(state) {
  const { surface, arrivals } = state;
  const now = state.now[0];
  const worth = (type, position) =>
    state.positions[type][position].m * state.items[type][now.ranking[position]].m;
  const shownTypes = surface.types.slice(0, MOST_TYPES);
  const cell = (type, content, below) =>
    h("td", { class: "r" }, h("span", { class: "on-narrow" }, swatch(type)), content, below);
  return h(
    "div",
    { class: "card", "data-key": "card-all" },
    h("div", { class: "ch" }, h("h3", null, "Everyone"), h("span", { class: "m s" }, oftenWords(now))),
    scrollBox(
      "The one ranking by user type",
      h(
        "table",
        { class: "slots eq" },
        h(
          "caption",
          { class: "vh" },
          "The one ranking shown, and the clicks expected from each position by user type",
        ),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, h("span", { class: "vh" }, "Position")),
            h("th", { scope: "col" }, "Item"),
            shownTypes.map((_, type) => h("th", { scope: "col", class: "r" }, typeName(state, type, true))),
            h("th", { scope: "col", class: "r" }, "All"),
          ),
        ),
        h(
          "tbody",
          null,
          now.ranking.map((item, position) =>
            h(
              "tr",
              null,
              h("td", null, h("span", { class: "pos" }, position + 1)),
              h("th", { class: "it", scope: "row" }, surface.items[item]),
              shownTypes.map((_, type) => {
                const [looks, mean] = [state.positions[type][position].m, state.items[type][item].m];
                return cell(
                  type,
                  number(worth(type, position)),
                  h("span", { class: "m sub" }, `${percent(looks)} × ${number(mean, 2)}`),
                );
              }),
              h(
                "td",
                { class: "r" },
                h("span", { class: "on-narrow m" }, "All"),
                number(sum(surface.types.map((_, type) => arrivals[type] * worth(type, position)))),
              ),
            ),
          ),
        ),
        h(
          "tfoot",
          null,
          h(
            "tr",
            null,
            h("td"),
            h("td", null, "Clicks per visit"),
            shownTypes.map((_, type) => {
              const value = valueOf(state, type);
              return cell(
                type,
                h("b", null, number(value.m)),
                h("span", { class: "m sub" }, intervalWords(value)),
              );
            }),
            h(
              "td",
              { class: "r" },
              h("span", { class: "on-narrow m" }, "All"),
              h(
                "b",
                null,
                number(sum(surface.types.map((_, type) => arrivals[type] * valueOf(state, type).m))),
              ),
            ),
          ),
        ),
      ),
    ),
    h("p", { class: "why" }, stressed(whyShownToEveryone(state))),
  );
}
