// Client of banditrank: see index.d.ts

const MAX_KNOWN = 100; // surfaces × user types

export class BanditRankError extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `the service responded with ${status}`);
    Object.assign(this, problem, { name: "BanditRankError", status, detail: this.message });
  }
}

export class BanditRank {
  #options;
  #headers = new Headers({ "content-type": "application/json" });
  #known = new Map(); // last unpinned items, and length

  constructor({ url, apiKey, timeoutMs = 1000, defaultOrder, onDefault = console.warn }) {
    this.#options = { url: url.replace(/\/+$/, ""), timeoutMs, defaultOrder, onDefault };
    if (apiKey) this.#headers.set("authorization", `Bearer ${apiKey}`);
  }

  async rank(surface, userType, { defaultOrder, ...options } = {}) {
    const key = `${surface}/${userType}`;
    for (const name in options) options[name] ?? delete options[name];
    try {
      const path = `surfaces/${encodeURIComponent(surface)}/rankings`;
      const body = { user_type: userType, ...options };
      const { id, items, arm, ignored, expires_at } = await this.#post(path, body);
      [id, ...items].forEach((name) => name.trim()); // throws if one is no string
      remember(this.#known, key, items, options);
      return { id, items, arm, ignored, expiresAt: new Date(expires_at), isDefault: false };
    } catch (error) {
      (async () => this.#options.onDefault(`default ranking: ${surface}`, error))().catch(() => {});
      const order = defaultOrder ?? this.#options.defaultOrder ?? [];
      const items = defaultItems(this.#known.get(key), order, options);
      return { id: null, items, expiresAt: null, isDefault: true, error };
    }
  }

  async feedback({ id }, { clicked = null, reward, final } = {}) {
    if (id === null) return "ignored";
    const body = { ranking: id, clicked, reward, final };
    for (let attempt = 0; ; attempt++) {
      try {
        return (await this.#post("feedback", body, 10_000, true)).status;
      } catch (error) {
        const isRefused = /^[34](?!08|29)/.test(error.status);
        if (isRefused || attempt > 2) throw error;
      }
      const backoffMs = 200 * 4 ** attempt * (0.5 + Math.random());
      await new Promise((resolve) => setTimeout(resolve, backoffMs));
    }
  }

  observe(ranking, elements, { finalWhenHidden = true, onFeedback } = {}) {
    const reported = new Set();
    let last = Promise.resolve("recorded");
    const report = (clicked) => {
      if (reported.has(clicked)) return;
      reported.add(clicked);
      last = last.then(async (status) => {
        if (!["recorded", "repeated"].includes(status)) return;
        const result = await this.feedback(ranking, { clicked }).catch((error) => error);
        onFeedback?.(result, clicked);
        return result;
      });
    };
    const listeners = new AbortController();
    const listen = (target, type, listener) => target.addEventListener(type, listener, listeners);
    [...elements].forEach((element, index) => {
      const click = ({ button }) => button < 2 && report(ranking.items[index]);
      listen(element, "click", click);
      listen(element, "auxclick", click); // middle button: a new tab
    });
    let wasVisible = !document.hidden;
    const leave = () => wasVisible && report(null);
    listen(window, "pagehide", leave);
    listen(document, "visibilitychange", () => {
      if (!document.hidden) wasVisible = true;
      else if (finalWhenHidden && !reported.size) leave();
    });
    return () => (leave(), listeners.abort());
  }

  async #post(path, body, timeoutMs = this.#options.timeoutMs, keepalive) {
    const response = await fetch(`${this.#options.url}/v1/${path}`, {
      method: "POST",
      headers: this.#headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
      keepalive,
    });
    if (response.ok) return response.json();
    throw new BanditRankError(response.status, await response.json().catch(() => {}));
  }
}

function remember(known, key, items, { pinned = {} }) {
  const free = items.filter((item) => !Object.values(pinned).includes(item));
  const length = Math.max(items.length, known.get(key)?.length ?? 0);
  known.delete(key); // the latest is the last
  known.set(key, { free, length });
  if (known.size > MAX_KNOWN) known.delete(known.keys().next().value);
}

function defaultItems(known, order, { candidates = [], exclude = [], pinned = {} }) {
  const { free, length } = known ?? { free: [], length: order.length };
  const all = [...new Set([...free, ...order, ...candidates])];
  const omitted = [...exclude, ...Object.values(pinned)];
  const allowed = candidates.length ? candidates : all;
  const items = all.filter((item) => allowed.includes(item) && !omitted.includes(item));
  for (const [position, item] of Object.entries(pinned)) items.splice(position - 1, 0, item);
  return items.slice(0, Math.max(length || items.length, ...Object.keys(pinned)));
}
