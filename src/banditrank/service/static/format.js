// Formatting of numbers, times and lists, the same for charts, tables and sentences.

// A number with fixed decimals and a typographic minus; zero has no sign, and what is not known is a dash.
export function number(value, decimals = 3) {
  if (value === null) return "–";
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

export function signed(value, decimals = 3) {
  const text = number(value, decimals);
  return text.startsWith("−") || Number(text) === 0 ? text : `+${text}`;
}

export const whole = (value) => Math.round(value).toLocaleString("en");

// A number of clicks, which may be weighted.
export const amount = (value) => (Number.isInteger(value) ? whole(value) : number(value, 1));

// A percentage; "<1%" and ">99%" instead of a rounded 0% and 100%.
export function percent(value, decimals = 0) {
  const unit = 10 ** -decimals;
  const shown = value * 100;
  if (value > 0 && shown < unit / 2) return `<${unit.toFixed(decimals)}%`;
  if (value < 1 && shown >= 100 - unit / 2) return `>${(100 - unit).toFixed(decimals)}%`;
  return `${number(shown, decimals)}%`;
}

// A probability that is estimated by a share of samples; its lower bound if it rounds to 100%.
export const probability = ({ estimate, low }) =>
  estimate < 0.995 || low === 1 ? percent(estimate) : `>${Math.floor(low * 100)}%`;

// A share that may be small.
export const smallShare = (value) => percent(value, Math.abs(value) < 0.01 ? 2 : 1);

// A difference with a sign; more decimals if it is small.
export function difference(value) {
  return Math.abs(value) < 5e-5 ? "no change" : signed(value, Math.abs(value) < 0.01 ? 4 : 3);
}

// 0.120–0.340; empty if the interval is not known
export const formatInterval = ({ low, high }, format = number) =>
  low === null || low === undefined ? "" : `${format(low)}–${format(high)}`;

export const magnitude = (value) => number(Math.abs(value), Math.abs(value) < 0.01 ? 4 : 3);

// A number of clicks per visit, or its interval, as clicks per 1,000 visits.
export function perThousand(value) {
  const clicks = value * 1000;
  return clicks > 0 && clicks < 0.05 ? "<0.1" : number(clicks, clicks < 9.95 ? 1 : 0);
}

export function list(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

// The first names, and the number of others.
export function shortList(names, maximum, rest = "others") {
  if (names.length <= maximum) return list(names);
  const more = names.length - maximum;
  return list([...names.slice(0, maximum), `${whole(more)} ${more === 1 ? rest.replace(/s$/, "") : rest}`]);
}

export const plural = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;

// "service started (3×)"
export const repeated = (text, count) => (count > 1 ? `${text} (${whole(count)}×)` : text);

const UNITS = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
];

// 42 s, 3 min, 1 h 30 min, 2 d
export function duration(seconds) {
  const rounded = Math.round(seconds);
  for (const [index, [size, unit]] of UNITS.entries()) {
    if (rounded < size) continue;
    const finer = UNITS[index + 1];
    const rest = finer ? Math.floor((rounded % size) / finer[0]) : 0;
    return `${Math.floor(rounded / size)} ${unit}${rest ? ` ${rest} ${finer[1]}` : ""}`;
  }
  return `${rounded} s`;
}

// 14:32:07 or 14:32, in UTC
export function clock(milliseconds, withSeconds = true) {
  return new Date(milliseconds).toISOString().slice(11, withSeconds ? 19 : 16);
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

export function day(milliseconds) {
  const date = new Date(milliseconds);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

// The time of day, with the date unless it is today.
export function moment(milliseconds, now = Date.now()) {
  const today = day(milliseconds) === day(now) && Math.abs(now - milliseconds) < 864e5;
  return today ? clock(milliseconds) : `${day(milliseconds)}, ${clock(milliseconds)}`;
}

const UTILITIES = { utilitarian: "utilitarian", nash: "Nash", maximin: "maximin" };

export const utilityName = (utility) => UTILITIES[utility] ?? utility;

// A name, truncated in its middle.
export const shorten = (name) =>
  name.length > 32 ? `${name.slice(0, 15).trimEnd()}…${name.slice(-15).trimStart()}` : name;

export const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1);
