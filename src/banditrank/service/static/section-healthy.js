// Is it healthy: the value, the limit, the last hour and the status of each health check.

import { BASE_URL } from "./api.js";
import { h } from "./element.js";
import { apiKey } from "./api-key.js";
import { section } from "./section.js";
import { healthyAnswer } from "./sentences.js";
import { checkStatus } from "./status.js";
import { scrollBox } from "./tables.js";

export function healthySection(state, silent) {
  const metrics = apiKey.get()
    ? [h("code", { class: "mono" }, "/metrics"), ", for keys with the right to read."] // links send no key
    : [h("a", { href: new URL("metrics", BASE_URL).href, class: "mono" }, "/metrics"), "."];
  const link = h("p", { class: "m s" }, "Most of these metrics are also at ", metrics);
  return section(
    "healthy",
    healthyAnswer(state, silent),
    link,
    scrollBox(
      "Health checks",
      h(
        "table",
        { class: "health stack" },
        h("caption", { class: "vh" }, "Health checks"),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            ["Check", "Now", "Limit", "Last hour", "Status"].map((cell) => h("th", { scope: "col" }, cell)),
          ),
        ),
        h(
          "tbody",
          null,
          state.health.map((check) => row(check, silent)),
        ),
      ),
    ),
  );
}

function row(check, silent) {
  return h(
    "tr",
    { "data-key": `check-${check.name}` },
    h("th", { scope: "row" }, check.name),
    h(
      "td",
      { class: "w" },
      h("span", { class: "now" }, check.value),
      " ",
      h("span", { class: "m" }, check.description),
    ),
    h("td", { class: "m lim" }, check.limit),
    h("td", { class: "hide" }, sparkline(check.last_hour)),
    h("td", { class: "stt" }, checkStatus(check, silent)),
  );
}

// A sparkline of the last hour, from its minimum to its maximum.
function sparkline(values) {
  const known = (values ?? []).filter((value) => value !== null);
  if (known.length < 2) return h("span", { class: "m" }, "–");
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const y = (value) => (high > low ? 20 - ((value - low) / (high - low)) * 16 : 12);
  const points = known.map(
    (value, i) => `${(2 + (i / (known.length - 1)) * 116).toFixed(1)},${y(value).toFixed(1)}`,
  );
  return h(
    "svg",
    { width: 120, height: 24, "aria-hidden": "true" },
    h("polyline", { points: points.join(" ") }),
  );
}
