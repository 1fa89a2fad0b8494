// The page's answers in words. Each is computed, and claims no more than the intervals allow: what they do
// not tell apart "cannot be told apart yet", and what may be nothing is "within chance".

export { rankingWords } from "./naming.js";
export * from "./sentences-shown.js";
export * from "./sentences-learned.js";
export * from "./sentences-working.js";
export * from "./sentences-fair.js";
export * from "./sentences-healthy.js";
