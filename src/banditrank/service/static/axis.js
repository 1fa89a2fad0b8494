// Ticks of axes: round numbers and round times.

export function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * (1 - 1e-9));
  const values = [];
  for (let tick = Math.ceil(low / step - 1e-9); tick * step <= high + step * 1e-9; tick++) {
    values.push(Number((tick * step).toPrecision(12)));
  }
  return values;
}

// The smallest range with round ends that contains all values.
export function roundRange(values, count, { floor = -Infinity, ceiling = Infinity } = {}) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (high - low < 1e-9) [low, high] = [low - 0.05, high + 0.05];
  const steps = ticks(low, high, count);
  const step = steps.length > 1 ? steps[1] - steps[0] : (high - low) / count;
  return {
    low: Math.max(floor, Number((Math.floor(low / step + 1e-9) * step).toPrecision(12))),
    high: Math.min(ceiling, Number((Math.ceil(high / step - 1e-9) * step).toPrecision(12))),
  };
}

// The number of decimal places that distinguishes all ticks.
export function decimalPlaces(ticks) {
  return Math.max(0, ...ticks.map((tick) => String(tick).split(".")[1]?.length ?? 0));
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAY = 86_400;

// Seconds between labels, for at most `count` labels.
export function timeStep(seconds, count) {
  const minimum = seconds / Math.max(1, count);
  return STEPS.find((step) => step >= minimum) ?? Math.ceil(minimum / DAY) * DAY;
}
