// Client of banditrank: see index.d.ts

const MAX_KNOWN = 100;
const ERROR_FIELDS = ["name", "message", "status", "type", "title", "field", "request_id"];

export class BanditRankError extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `the service responded with ${status}`);
    Object.assign(this, problem, { name: "BanditRankError", status, detail: this.message });
  }
}

export class BanditRank {
  #options;
  #headers = new Headers({ "content-type": "application/json" });
  #known = new Map();

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
      const { expires_at: expiresAt, ...ranking } = await this.#post(path, body);
      // Throws if not strings.
      [ranking.id, expiresAt, ...ranking.items].forEach((text) => text.trim());
      remember(this.#known, key, ranking.items, options);
      return { ...ranking, expiresAt, isDefault: false };
    } catch (cause) {
      (async () => this.#options.onDefault(`default ranking: ${surface}`, cause))().catch(() => {});
      const order = defaultOrder ?? this.#options.defaultOrder ?? [];
      const items = defaultItems(order, options, this.#known.get(key));
      const error = JSON.parse(JSON.stringify(Object(cause), ERROR_FIELDS));
      return { id: null, items, expiresAt: null, isDefault: true, error };
    }
  }

  async feedback({ id }, { clicked = null, reward, final } = {}) {
    if (id === null) return "ignored";
    const body = { ranking: id, clicked, reward, final };
    for (let backoffMs = 200; ; backoffMs *= 4) {
      try {
        return (await this.#post("feedback", body, 10_000, true)).status;
      } catch (error) {
        if (backoffMs > 5000 || /^[34](?!08|29)/.test(error.status)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, backoffMs * (0.5 + Math.random())));
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
      // middle button
      listen(element, "auxclick", click);
    });
    let wasVisible = false;
    const leave = () => wasVisible && report(null);
    const look = () => {
      if (!document.hidden) wasVisible = true;
      else if (finalWhenHidden && !reported.size) leave();
    };
    // Strict mode of React stops at once.
    queueMicrotask(look);
    listen(document, "visibilitychange", look);
    listen(window, "pagehide", leave);
    return () => (leave(), listeners.abort());
  }

  async #post(path, body, timeoutMs = this.#options.timeoutMs, keepalive) {
    const response = await fetch(`${this.#options.url}/v1/${path}`, {
      method: "POST",
      headers: this.#headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
      // Next.js caches otherwise.
      cache: "no-store",
      keepalive,
    });
    if (response.ok) return response.json();
    throw new BanditRankError(response.status, await response.json().catch(() => {}));
  }
}

function remember(known, key, items, { pinned = {} }) {
  const free = items.filter((item) => !Object.values(pinned).includes(item));
  const length = Math.max(items.length, known.get(key)?.length ?? 0);
  // Latest last.
  known.delete(key);
  known.set(key, { free, length });
  if (known.size > MAX_KNOWN) known.delete(known.keys().next().value);
}

function defaultItems(order, { candidates = [], exclude = [], pinned = {} }, known = {}) {
  const { free = [], length = order.length } = known;
  const all = new Set([...free, ...order, ...candidates]);
  for (const item of [...exclude, ...Object.values(pinned)]) all.delete(item);
  const items = [...all].filter((item) => !candidates.length || candidates.includes(item));
  for (const [position, item] of Object.entries(pinned)) items.splice(position - 1, 0, item);
  return items.slice(0, Math.max(length || items.length, ...Object.keys(pinned)));
}
