// The sentences of the dashboard. Each claims only what the intervals support: overlapping estimates
// "cannot be distinguished yet", and a difference that may be zero is "within chance".

export { formatRanking } from "./names.js";
export * from "./sentences-shown.js";
export * from "./sentences-learned.js";
export * from "./sentences-working.js";
export * from "./sentences-fair.js";
export * from "./sentences-healthy.js";
