// curl commands, with names quoted for the shell.

import { BASE_URL } from "./api.js";
import { apiKey } from "./api-key.js";

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// The command for a POST request, with a placeholder instead of the API key.
export function curlPost(path, body) {
  const headers = ["content-type: application/json", ...(apiKey.get() ? ["authorization: Bearer KEY"] : [])];
  return [
    `curl -X POST ${quoted(new URL(path, BASE_URL).href)}`,
    ...headers.map((header) => `-H ${quoted(header)}`),
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}
