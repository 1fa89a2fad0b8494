// What keeps a page up to date: a stream of events, polling where there is none, nothing while nobody looks.

import { contentOf, Problem, read, request, surfacePath } from "./api.js";
import { merge } from "./series.js";
import { readStream } from "./stream.js";

export const STALE_SECONDS = 10; // without a sign of the service: what is shown may be old
export const BANNER_SECONDS = 30; // then the page says so in large
const POLLING = [5, 10, 30, 60]; // seconds between questions while nothing changes
const TRYING = [2, 5, 10, 30]; // seconds between tries while nothing answers
const SILENCE = 15; // seconds after which a stream that says nothing is given up: it says something every 5
const STREAM_AGAIN = 600; // seconds of polling after which a stream is tried again

export class Feed {
  // onChange() is called whenever state, series or status changed.
  constructor(name, onChange) {
    this.name = name;
    this.onChange = onChange;
    this.state = null;
    this.series = null;
    this.seriesProblem = null;
    this.problem = null; // of the last try, null once an answer came
    this.paused = false;
    this.started = Date.now();
    this.lastSign = null; // when the service was last heard of
    this.due = null; // until when silence means nothing
    this.nextTry = null;
    this.etag = null;
    this.abort = null;
    document.addEventListener("visibilitychange", () => this.#attend());
  }

  start() {
    this.#attend();
  }

  pause(paused) {
    this.paused = paused;
    this.#attend();
    this.onChange();
  }

  // For how many seconds the service has been silent when it should have said something.
  silentFor(now = Date.now()) {
    if (this.paused || !this.state || this.due === null) return 0;
    return now <= this.due ? 0 : (now - this.lastSign) / 1000;
  }

  #attend() {
    const wanted = !this.paused && document.visibilityState === "visible";
    if (wanted && !this.abort) {
      const running = new AbortController();
      this.abort = running;
      // Time spent paused or hidden is no silence of the service.
      this.due = Date.now() + STALE_SECONDS * 1000;
      this.lastSign = this.lastSign === null ? null : Date.now();
      this.#run(running.signal).then(() => {
        if (this.abort === running) this.abort = null; // it gave up by itself, and can be started again
      });
    } else if (!wanted && this.abort) {
      this.abort.abort();
      this.abort = null;
      this.nextTry = null;
    }
  }

  // Goes on until the signal aborts it or the service wants another key.
  async #run(signal) {
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (await this.#stream(signal)) failures = 0;
        else await this.#poll(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.problem = error instanceof Problem ? error : new Problem(`The page failed: ${error.message}`);
        this.onChange();
        if (error.needsKey) return;
        if (error.isUnknown) failures = TRYING.length; // whatever is not there will not be there at once
      }
      await this.#wait(TRYING[Math.min(failures++, TRYING.length - 1)], signal);
    }
  }

  // Returns whether the stream said anything before it ended.
  async #stream(signal) {
    const ending = new AbortController();
    const end = () => ending.abort();
    signal.addEventListener("abort", end, { once: true });
    let said = false;
    let watch = setTimeout(end, SILENCE * 1000);
    try {
      await readStream(surfacePath(this.name, "/events"), {
        signal: ending.signal,
        onSign: () => {
          clearTimeout(watch);
          watch = setTimeout(end, SILENCE * 1000);
          this.#heard(STALE_SECONDS);
        },
        onEvent: (kind, document) => {
          if (kind === "state") {
            if (!said) this.#readSeries(signal); // what closed while nobody listened
            said = true;
            this.#show(document);
          } else if (kind === "series") {
            this.#add(document, signal);
          }
        },
      });
    } catch (error) {
      if (error.needsKey || error.isUnknown) throw error;
      if (!said && error instanceof Problem && error.status === 0) throw error; // nobody there to poll either
    } finally {
      clearTimeout(watch);
      signal.removeEventListener("abort", end);
      end(); // also if it was an event that failed, and the service goes on telling
    }
    return said;
  }

  async #poll(signal) {
    const until = Date.now() + STREAM_AGAIN * 1000;
    let unchanged = 0;
    while (!signal.aborted && Date.now() < until) {
      const headers = this.etag && this.state ? { "if-none-match": this.etag } : {};
      const response = await request(surfacePath(this.name, "/dashboard"), { headers, signal });
      unchanged = response.status === 304 ? unchanged + 1 : 0;
      const delay = POLLING[Math.min(unchanged, POLLING.length - 1)];
      this.#heard(delay + STALE_SECONDS);
      if (response.status !== 304) {
        this.etag = response.headers.get("etag");
        this.#show(await contentOf(response, signal));
        await this.#readSeries(signal);
      }
      await this.#wait(delay, signal);
    }
  }

  #heard(seconds) {
    this.lastSign = Date.now();
    this.due = this.lastSign + seconds * 1000;
    if (this.problem) {
      this.problem = null;
      this.onChange();
    }
  }

  #show(document) {
    this.state = document;
    this.onChange();
  }

  #add(document, signal) {
    const merged = merge(this.series, document);
    if (merged === null) {
      this.#readSeries(signal);
    } else {
      this.series = merged;
      this.seriesProblem = null;
      this.onChange();
    }
  }

  // The series may fail by itself: then its panel says so, and the others stay as they are.
  async #readSeries(signal) {
    const last = this.series?.visits.length;
    const since = last ? `?since=${encodeURIComponent(sinceOf(this.series, last))}` : "";
    try {
      const added = await read(surfacePath(this.name, `/series${since}`), { signal });
      const merged = merge(this.series, added); // with what the stream brought meanwhile
      this.series = merged ?? (await read(surfacePath(this.name, "/series"), { signal }));
      this.seriesProblem = null;
    } catch (error) {
      if (signal.aborted) return;
      this.seriesProblem = error;
    }
    this.onChange();
  }

  #wait(seconds, signal) {
    if (signal.aborted) return Promise.resolve();
    this.nextTry = Date.now() + seconds * 1000;
    this.onChange();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, seconds * 1000);
      signal.addEventListener("abort", done);
    });
  }
}

// The last bucket is asked for again: it may not have been closed.
const sinceOf = (series, count) =>
  new Date(Date.parse(series.start) + (count - 1) * series.bucket_s * 1000).toISOString();
