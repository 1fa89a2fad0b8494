// What keeps the list of surfaces up to date: a question every few seconds, while someone looks.

import { access, surfaces } from "./api.js";
import { STALE_SECONDS } from "./feed.js";

const SECONDS = 5; // between questions

export class Listing {
  // onChange() is called whenever something was told, or could not be.
  constructor(onChange) {
    this.onChange = onChange;
    this.allowed = null; // what the key may do; null until it is known
    this.surfaces = null;
    this.state = null; // when they were told
    this.problem = null; // of the last try
    this.started = Date.now();
    this.asking = false;
    this.#heard();
    document.addEventListener("visibilitychange", () => {
      this.#heard(); // time spent hidden is no silence of the service
      this.#attend();
    });
    setInterval(() => this.#attend(), 1000 * SECONDS);
    this.#attend();
  }

  // For how many seconds the service has been silent when it should have said something.
  silentFor(now = Date.now()) {
    return this.state && now > this.due ? (now - this.lastSign) / 1000 : 0;
  }

  async ask() {
    if (this.asking) return;
    this.asking = true;
    try {
      this.allowed = await access();
      this.#heard();
      if (this.allowed.rights.includes("read")) {
        this.surfaces = await surfaces();
        this.#heard();
        this.state = { as_of: new Date().toISOString() };
      }
      this.problem = null;
    } catch (problem) {
      this.problem = problem;
    }
    this.asking = false;
    this.onChange();
  }

  #attend() {
    if (document.visibilityState === "visible") this.ask();
  }

  #heard() {
    this.lastSign = Date.now();
    this.due = this.lastSign + 1000 * (SECONDS + STALE_SECONDS);
  }
}
