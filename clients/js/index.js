// Client of the banditrank service. Documentation: index.d.ts

const FEEDBACK_TIMEOUT_MS = 10_000;
const MAX_RETRIES = 3;
const MAX_KNOWN = 100; // surfaces × user types

// False without a response.
const isRefusal = ({ status }) => status < 500 && status !== 408 && status !== 429;

export class BanditRankError extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `the service responded with ${status}`);
    Object.assign(this, problem, { name: "BanditRankError", status, detail: this.message });
  }
}

export class BanditRank {
  #options;
  #headers = new Headers({ "content-type": "application/json" });
  #known = new Map(); // last known items without pins, and number of positions

  constructor({ url, apiKey, timeoutMs = 1000, defaultOrder = [] }) {
    this.#options = { url: url.replace(/\/+$/, ""), timeoutMs, defaultOrder };
    if (apiKey) this.#headers.set("authorization", `Bearer ${apiKey}`);
  }

  async rank(surface, userType, { defaultOrder = this.#options.defaultOrder, ...options } = {}) {
    const path = `surfaces/${encodeURIComponent(surface)}/rankings`;
    const key = `${path} ${userType}`;
    const body = JSON.stringify({ user_type: userType, ...options });
    try {
      const { id, items, arm, expires_at } = await this.#post(path, body, this.#options.timeoutMs);
      remember(this.#known, key, items, options);
      return { id, items, arm, expiresAt: new Date(expires_at), isDefault: false };
    } catch (error) {
      if (isRefusal(error)) throw error;
      const items = defaultItems(this.#known.get(key), defaultOrder, options);
      return { id: null, items, expiresAt: null, isDefault: true, error };
    }
  }

  async feedback({ id }, { clicked = null, reward, final } = {}) {
    if (id === null) return "ignored";
    const body = JSON.stringify({ ranking: id, clicked, reward, final });
    for (let attempt = 0; ; attempt++) {
      try {
        return (await this.#post("feedback", body, FEEDBACK_TIMEOUT_MS, true)).status;
      } catch (error) {
        if (isRefusal(error) || attempt === MAX_RETRIES) throw error;
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
        if (status !== "recorded" && status !== "repeated") return; // counted
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
      listen(element, "auxclick", click); // middle button: in a new tab
    });
    let wasVisible = !document.hidden;
    const leave = () => wasVisible && report(null);
    listen(window, "pagehide", leave);
    listen(document, "visibilitychange", () => {
      if (!document.hidden) wasVisible = true;
      else if (finalWhenHidden && !reported.size) leave();
    });
    return () => {
      leave();
      listeners.abort();
    };
  }

  async #post(path, body, timeoutMs, keepalive) {
    const signal = AbortSignal.timeout(timeoutMs);
    const request = { method: "POST", headers: this.#headers, body, signal, keepalive };
    const response = await fetch(`${this.#options.url}/v1/${path}`, request);
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
  const isAllowed = (item) => !candidates.length || candidates.includes(item);
  const items = all.filter((item) => isAllowed(item) && !omitted.includes(item));
  // Entries are in order of positions.
  for (const [position, item] of Object.entries(pinned)) items.splice(position - 1, 0, item);
  return items.slice(0, Math.max(length || items.length, ...Object.keys(pinned)));
}
