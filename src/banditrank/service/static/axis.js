// Round numbers and round times for axes.

export function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * (1 - 1e-9));
  const found = [];
  for (let tick = Math.ceil(low / step - 1e-9); tick * step <= high + step * 1e-9; tick++) {
    found.push(Number((tick * step).toPrecision(12)));
  }
  return found;
}

// A range that begins and ends at round numbers around some values.
export function roundRange(values, count, { floor = -Infinity, ceiling = Infinity } = {}) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (high - low < 1e-9) [low, high] = [low - 0.05, high + 0.05];
  const steps = ticks(low, high, count);
  const step = steps.length > 1 ? steps[1] - steps[0] : (high - low) / count;
  return {
    lo: Math.max(floor, Number((Math.floor(low / step + 1e-9) * step).toPrecision(12))),
    hi: Math.min(ceiling, Number((Math.ceil(high / step - 1e-9) * step).toPrecision(12))),
  };
}

// As many decimals as tell the ticks apart.
export function decimalsOf(found) {
  const text = found.map((tick) => String(tick).split(".")[1]?.length ?? 0);
  return Math.max(0, ...text);
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAY = 86_400;

// Seconds between labels, so that there are at most so many.
export function timeStep(seconds, count) {
  const least = seconds / Math.max(1, count);
  return STEPS.find((step) => step >= least) ?? Math.ceil(least / DAY) * DAY;
}
