// Commands to be pasted into a shell: whatever a name contains, it stays a word of the command.

import { SERVICE } from "./api.js";
import { key } from "./key.js";

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// A POST to the service; the key itself is not shown to whoever looks over a shoulder.
export function postCommand(path, body) {
  const headers = ["content-type: application/json", ...(key.get() ? ["authorization: Bearer KEY"] : [])];
  return [
    `curl -X POST ${quoted(new URL(path, SERVICE).href)}`,
    ...headers.map((header) => `-H ${quoted(header)}`),
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}
