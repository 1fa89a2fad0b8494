// The results of the surface's experiment, fetched again when the counts have changed.

const MIN_SECONDS = 10; // between two requests: the service computes one report at a time

export class ExperimentFeed {
  constructor(fetchResults, onChange) {
    this.fetchResults = fetchResults;
    this.onChange = onChange;
    this.results = null;
    this.error = null;
    this.fetchedVersion = null;
    this.nextFetchAt = 0;
    this.isFetching = false;
  }

  // Returns the latest results of the experiment of a state, null until they are known.
  update(state, now = Date.now()) {
    if (this.results?.experiment !== state.surface.experiment) this.results = null;
    const isKnown = this.results && this.fetchedVersion === state.version;
    if (!isKnown && !this.isFetching && (now >= this.nextFetchAt || (!this.results && !this.error))) {
      this.#fetch(state.version, now);
    }
    return this.results;
  }

  async #fetch(version, now) {
    this.isFetching = true;
    this.nextFetchAt = now + MIN_SECONDS * 1000;
    try {
      this.results = await this.fetchResults();
      this.error = null;
      this.fetchedVersion = version;
    } catch (error) {
      this.error = error;
    }
    this.isFetching = false;
    this.onChange();
  }
}
