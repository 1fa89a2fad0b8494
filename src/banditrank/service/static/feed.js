// Live updates of a surface: server-sent events, or polling if they fail; none while the page is hidden.

import { ApiError, fetchJson, readJson, request, surfacePath } from "./api.js";
import { readEventStream } from "./event-stream.js";
import { merge } from "./time-series.js";

export const STALE_SECONDS = 10; // without a sign of the service, until the data is called stale
export const BANNER_SECONDS = 30; // without a sign of the service, until there is a banner
const POLL_SECONDS = [5, 10, 30, 60]; // between polls while nothing changes
const RETRY_SECONDS = [2, 5, 10, 30]; // between retries while the service does not respond
const STREAM_TIMEOUT_SECONDS = 15; // without data; the service sends a heartbeat every 5 seconds
const STREAM_RETRY_SECONDS = 600; // of polling, until the stream is retried

export class Feed {
  // onChange() is called after each change of the state, the time series or the status.
  constructor(name, onChange) {
    this.name = name;
    this.onChange = onChange;
    this.state = null;
    this.series = null;
    this.seriesError = null;
    this.error = null; // of the last request; null after a response
    this.paused = false;
    this.started = Date.now();
    this.receivedAt = null; // time at which the state arrived
    this.lastHeardAt = null; // time of the last sign of the service
    this.dueAt = null; // time at which the next sign is due
    this.nextRetryAt = null;
    this.etag = null;
    this.abort = null;
    document.addEventListener("visibilitychange", () => this.#startOrStop());
  }

  start() {
    this.#startOrStop();
  }

  pause(paused) {
    this.paused = paused;
    this.#startOrStop();
    this.onChange();
  }

  // Seconds since the last sign of the service; 0 before the next one is due.
  silentFor(now = Date.now()) {
    if (this.paused || !this.state || this.dueAt === null) return 0;
    return now <= this.dueAt ? 0 : (now - this.lastHeardAt) / 1000;
  }

  #startOrStop() {
    const shouldRun = !this.paused && document.visibilityState === "visible";
    if (shouldRun && !this.abort) {
      const running = new AbortController();
      this.abort = running;
      // The time while the page was paused or hidden does not count as silence.
      this.dueAt = Date.now() + STALE_SECONDS * 1000;
      this.lastHeardAt = this.lastHeardAt === null ? null : Date.now();
      this.#run(running.signal).then(() => {
        if (this.abort === running) this.abort = null; // it ended by itself and can be restarted
      });
    } else if (!shouldRun && this.abort) {
      this.abort.abort();
      this.abort = null;
      this.nextRetryAt = null;
    }
  }

  // Runs until the signal aborts it or the service requires another key.
  async #run(signal) {
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (await this.#stream(signal)) failures = 0;
        else await this.#poll(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.error = error instanceof ApiError ? error : new ApiError(`The page failed: ${error.message}`);
        this.onChange();
        if (error.needsKey) return;
        if (error.isUnknown) failures = RETRY_SECONDS.length; // wait longest for a surface to be created
      }
      await this.#wait(RETRY_SECONDS[Math.min(failures++, RETRY_SECONDS.length - 1)], signal);
    }
  }

  // Returns whether the stream had a state event before it ended.
  async #stream(signal) {
    const controller = new AbortController();
    const end = () => controller.abort();
    signal.addEventListener("abort", end, { once: true });
    let hasState = false;
    let timeout = setTimeout(end, STREAM_TIMEOUT_SECONDS * 1000);
    try {
      await readEventStream(surfacePath(this.name, "/events"), {
        signal: controller.signal,
        onData: () => {
          clearTimeout(timeout);
          timeout = setTimeout(end, STREAM_TIMEOUT_SECONDS * 1000);
          this.#recordSign(STALE_SECONDS);
        },
        onEvent: (type, document) => {
          if (type === "state") {
            if (!hasState) this.#fetchSeries(signal); // buckets that closed before the stream
            hasState = true;
            this.#show(document);
          } else if (type === "counts" && hasState) {
            this.#show({ ...this.state, ...document }); // the estimates are the same
          } else if (type === "series") {
            this.#add(document, signal);
          }
        },
      });
    } catch (error) {
      if (error.needsKey || error.isUnknown) throw error;
      // Without any response, polling would fail as well.
      if (!hasState && error instanceof ApiError && error.status === 0) throw error;
    } finally {
      clearTimeout(timeout);
      signal.removeEventListener("abort", end);
      end(); // also after an event that cannot be parsed
    }
    return hasState;
  }

  async #poll(signal) {
    const end = Date.now() + STREAM_RETRY_SECONDS * 1000;
    let unchanged = 0;
    while (!signal.aborted && Date.now() < end) {
      const headers = this.etag && this.state ? { "if-none-match": this.etag } : {};
      const response = await request(surfacePath(this.name, "/dashboard"), { headers, signal });
      unchanged = response.status === 304 ? unchanged + 1 : 0;
      const delay = POLL_SECONDS[Math.min(unchanged, POLL_SECONDS.length - 1)];
      this.#recordSign(delay + STALE_SECONDS);
      if (response.status !== 304) {
        this.etag = response.headers.get("etag");
        this.#show(await readJson(response, signal));
        await this.#fetchSeries(signal);
      }
      await this.#wait(delay, signal);
    }
  }

  #recordSign(seconds) {
    this.lastHeardAt = Date.now();
    this.dueAt = this.lastHeardAt + seconds * 1000;
    if (this.error) {
      this.error = null;
      this.onChange();
    }
  }

  #show(document) {
    this.state = document;
    this.receivedAt = Date.now();
    this.onChange();
  }

  #add(document, signal) {
    const merged = merge(this.series, document);
    if (merged === null) {
      this.#fetchSeries(signal);
    } else {
      this.series = merged;
      this.seriesError = null;
      this.onChange();
    }
  }

  // An error of the time series is shown in its panel only.
  async #fetchSeries(signal) {
    const last = this.series?.visits.length;
    const since = last ? `?since=${encodeURIComponent(sinceParameter(this.series, last))}` : "";
    try {
      const added = await fetchJson(surfacePath(this.name, `/series${since}`), { signal });
      const merged = merge(this.series, added); // with buckets that the stream added meanwhile
      this.series = merged ?? (await fetchJson(surfacePath(this.name, "/series"), { signal }));
      this.seriesError = null;
    } catch (error) {
      if (signal.aborted) return;
      this.seriesError = error;
    }
    this.onChange();
  }

  #wait(seconds, signal) {
    if (signal.aborted) return Promise.resolve();
    this.nextRetryAt = Date.now() + seconds * 1000;
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

// The start of the last bucket, which is fetched again because it may not have been closed.
const sinceParameter = (series, count) =>
  new Date(Date.parse(series.start) + (count - 1) * series.bucket_seconds * 1000).toISOString();
