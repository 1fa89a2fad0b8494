// Placement of event labels: in rows above a chart, none over another.

import { repeated } from "./format.js";
import { fitText, textWidth } from "./text-width.js";

const MAX_ROWS = 4;
const OFFSET = 6; // of a label from the line of its event
const GAP = 10; // between labels in a row
const SIZE = 12;

// Returns the number of rows, and their labels: {text, x, row, events}. Events at the same place with the
// same text share a label. Events for which no row is free have none; the readout and the table have all.
//
// events: [{x, text}] in order of x
export function placeLabels(events, left, right) {
  const ends = []; // of the last label in each row
  const labels = [];
  for (const { x, text, events: all } of groups(events, right - left - OFFSET)) {
    const width = textWidth(text, SIZE);
    const [after, before] = [x + OFFSET, x - OFFSET - width];
    const from = after + width <= right ? after : before >= left ? before : right - width;
    const free = ends.findIndex((end) => end + GAP <= from);
    const row = free < 0 ? ends.length : free;
    if (row === MAX_ROWS) continue;
    ends[row] = from + width;
    labels.push({ text, x: from, row, events: all });
  }
  return { rows: ends.length, labels };
}

// Merges events with the same text whose labels would overlap.
function groups(events, maxWidth) {
  const merged = [];
  for (const event of events) {
    const { x, text } = event;
    const last = merged.findLast((one) => one.name === text);
    if (last && x < last.x + OFFSET + textWidth(last.text, SIZE) + GAP) {
      last.events.push(event);
      last.text = fitText(repeated(text, last.events.length), maxWidth, SIZE);
    } else {
      merged.push({ x, name: text, events: [event], text: fitText(text, maxWidth, SIZE) });
    }
  }
  return merged;
}
