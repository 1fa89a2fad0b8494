// Requests to the API of the service that served this page.

import { apiKey } from "./api-key.js";

// URL of the service: scripts are one level below it, also behind a proxy with a path prefix.
export const BASE_URL = new URL("..", import.meta.url);

// Timeouts by method: creating the first surface of its kind compiles code, which may take a minute.
const TIMEOUT_SECONDS = { GET: 30, POST: 180, DELETE: 180 };

// A failed request; status is 0 without a response.
export class ApiError extends Error {
  constructor(message, { status = 0, requestId = null, type = null } = {}) {
    super(message);
    this.status = status;
    this.type = type; // of the problem details
    this.requestId = requestId;
  }

  get needsKey() {
    return this.status === 401 || this.status === 403;
  }

  get isCompiling() {
    return this.type === "urn:banditrank:problem:compiling";
  }

  get isUnknown() {
    return this.status === 404 || this.status === 410;
  }
}

export const surfacePath = (name, rest = "") => `v1/surfaces/${encodeURIComponent(name)}${rest}`;
export const surfacePage = (name) => new URL(`surfaces/${encodeURIComponent(name)}`, BASE_URL).href;

// Returns a response with a 2xx status or 304, and throws an ApiError otherwise. A streaming response has no
// timeout.
export async function request(
  path,
  { method = "GET", body, headers = {}, signal, isStreaming = false } = {},
) {
  const allHeaders = { ...headers };
  if (apiKey.get()) allHeaders.authorization = `Bearer ${apiKey.get()}`;
  if (body !== undefined) allHeaders["content-type"] = "application/json";
  const timeout = isStreaming ? null : AbortSignal.timeout(1000 * TIMEOUT_SECONDS[method]);
  let response;
  try {
    response = await fetch(new URL(path, BASE_URL), {
      method,
      headers: allHeaders,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any([signal, timeout].filter(Boolean)),
      cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The service does not respond.");
  }
  if (response.ok || response.status === 304) return response;
  throw await toApiError(response);
}

async function toApiError(response) {
  const requestId = response.headers.get("x-request-id");
  let message = `The service returned status ${response.status}.`;
  let type = null;
  try {
    const document = await response.json();
    message = document.detail ?? document.title ?? message;
    type = document.type ?? null;
  } catch {
    // The response of a proxy has no problem details.
  }
  return new ApiError(message, { status: response.status, requestId, type });
}

// Returns the JSON of a response, whose body may be incomplete.
export async function readJson(response, signal) {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The response of the service cannot be read.");
  }
}

export async function fetchJson(path, options) {
  return readJson(await request(path, options), options?.signal);
}

export const fetchAccess = () => fetchJson("v1/access");
export const fetchSurfaceList = () => fetchJson("v1/surfaces");
export const fetchSurfaces = async () => (await fetchSurfaceList()).surfaces;
export const createSurface = (body) => fetchJson("v1/surfaces", { method: "POST", body });
export const addItems = (name, items) =>
  fetchJson(surfacePath(name, "/items"), { method: "POST", body: { items } });
export const retireItem = (name, item) =>
  fetchJson(surfacePath(name, `/items/${encodeURIComponent(item)}`), { method: "DELETE" });
export const fetchExperiment = (name) => fetchJson(surfacePath(name, "/experiment"));
export const fetchExplanation = (id) => fetchJson(`v1/rankings/${encodeURIComponent(id)}`);
