// The list of surfaces, refreshed every few seconds while the page is visible.

import { fetchAccess, fetchSurfaceList } from "./api.js";
import { STALE_SECONDS } from "./feed.js";

const REFRESH_SECONDS = 5;

export class SurfaceList {
  // onChange() is called after each refresh.
  constructor(onChange) {
    this.onChange = onChange;
    this.access = null; // rights of the key; null until they are loaded
    this.surfaces = null;
    this.isLoading = false; // whether the service still compiles or loads surfaces after its start
    this.state = null; // time of the last refresh
    this.error = null; // of the last refresh
    this.started = Date.now();
    this.isRefreshing = false;
    this.#recordSign();
    document.addEventListener("visibilitychange", () => {
      this.#recordSign(); // the time while the page was hidden does not count as silence
      this.#refreshIfVisible();
    });
    setInterval(() => this.#refreshIfVisible(), 1000 * REFRESH_SECONDS);
    this.#refreshIfVisible();
  }

  // Seconds since the last sign of the service; 0 before the next one is due.
  silentFor(now = Date.now()) {
    return this.state && now > this.dueAt ? (now - this.lastHeardAt) / 1000 : 0;
  }

  async refresh() {
    if (this.isRefreshing) return;
    this.isRefreshing = true;
    try {
      this.access = await fetchAccess();
      this.#recordSign();
      if (this.access.rights.includes("read")) {
        const list = await fetchSurfaceList();
        this.surfaces = list.surfaces;
        this.isLoading = list.is_loading;
        this.#recordSign();
        this.state = { as_of: new Date().toISOString() };
      }
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this.isRefreshing = false;
    this.onChange();
  }

  #refreshIfVisible() {
    if (document.visibilityState === "visible") this.refresh();
  }

  #recordSign() {
    this.lastHeardAt = Date.now();
    this.dueAt = this.lastHeardAt + 1000 * (REFRESH_SECONDS + STALE_SECONDS);
  }
}
