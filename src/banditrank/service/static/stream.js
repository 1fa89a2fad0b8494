// Server-sent events, read with fetch: EventSource cannot send a key in a header.

import { Problem, request } from "./api.js";

// Calls onEvent(kind, document) for every event, and onSign() whenever anything at all arrives, until the
// service ends the stream or the signal aborts it.
export async function readStream(path, { signal, onEvent, onSign }) {
  const response = await request(path, {
    signal,
    endless: true,
    headers: { accept: "text/event-stream" },
  });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    await response.body?.cancel();
    throw new Problem("There is no stream of events.", { status: 406 });
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parse = eventParser(onEvent);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onSign();
    parse(value);
  }
}

// Returns a function that is fed text in pieces of any size.
export function eventParser(onEvent) {
  let rest = "";
  let kind = "message";
  let data = [];
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) onEvent(kind, JSON.parse(data.join("\n")));
        kind = "message";
        data = [];
      } else if (line.startsWith("event:")) {
        kind = line.slice(6).trim();
      } else if (line.startsWith("data:")) {
        data.push(line.slice(5).replace(/^ /, ""));
      } // anything else is a comment, which only shows that the service is there
    }
  };
}
