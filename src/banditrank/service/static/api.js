// Requests to the service that served this page, and to no other.

import { key } from "./key.js";

// The address of the service: assets lie one step below it, also behind a proxy that puts it under a path.
export const SERVICE = new URL("..", import.meta.url);

// Seconds to wait for an answer: creating a surface may take a minute, the first of its kind is compiled.
const PATIENCE = { GET: 30, POST: 180, DELETE: 180 };

// What went wrong, in the words of the service if it had any.
export class Problem extends Error {
  constructor(message, { status = 0, requestId = null } = {}) {
    super(message);
    this.status = status;
    this.requestId = requestId;
  }

  get needsKey() {
    return this.status === 401 || this.status === 403;
  }

  get isUnknown() {
    return this.status === 404 || this.status === 410;
  }
}

export const surfacePath = (name, rest = "") => `v1/surfaces/${encodeURIComponent(name)}${rest}`;
export const surfacePage = (name) => new URL(`surfaces/${encodeURIComponent(name)}`, SERVICE).href;

// Returns the response if it is a good one or says that nothing changed, and throws a Problem if not. What is
// endless is ended by its signal alone.
export async function request(path, { method = "GET", body, headers = {}, signal, endless = false } = {}) {
  const sent = { ...headers };
  if (key.get()) sent.authorization = `Bearer ${key.get()}`;
  if (body !== undefined) sent["content-type"] = "application/json";
  const late = endless ? null : AbortSignal.timeout(1000 * PATIENCE[method]);
  let response;
  try {
    response = await fetch(new URL(path, SERVICE), {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any([signal, late].filter(Boolean)),
      cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem("The service does not answer.");
  }
  if (response.ok || response.status === 304) return response;
  throw await problemOf(response);
}

async function problemOf(response) {
  const requestId = response.headers.get("x-request-id");
  let told = `The service answered with status ${response.status}.`;
  try {
    const document = await response.json();
    told = document.detail ?? document.title ?? told;
  } catch {
    // Something between this page and the service answered: it has no problem document.
  }
  return new Problem(told, { status: response.status, requestId });
}

// The document of a response, which may still stop halfway.
export async function contentOf(response, signal) {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem("The answer of the service cannot be read.");
  }
}

export async function read(path, options) {
  return contentOf(await request(path, options), options?.signal);
}

export const access = () => read("v1/access");
export const surfaces = async () => (await read("v1/surfaces")).surfaces;
export const createSurface = (body) => read("v1/surfaces", { method: "POST", body });
export const addItems = (name, items) =>
  read(surfacePath(name, "/items"), { method: "POST", body: { items } });
export const retireItem = (name, item) =>
  read(surfacePath(name, `/items/${encodeURIComponent(item)}`), { method: "DELETE" });
export const explanation = (id) => read(`v1/rankings/${encodeURIComponent(id)}`);
