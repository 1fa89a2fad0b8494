// Server-sent events over fetch, because EventSource cannot send an API key in a header.

import { ApiError, request } from "./api.js";

// Calls onEvent(type, document) for each event and onData() for all data, until the stream ends or the signal
// aborts it.
export async function readEventStream(path, { signal, onEvent, onData }) {
  const response = await request(path, {
    signal,
    isStreaming: true,
    headers: { accept: "text/event-stream" },
  });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    await response.body?.cancel();
    throw new ApiError("The response is not an event stream.", { status: 406 });
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parse = eventParser(onEvent);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onData();
    parse(value);
  }
}

// Returns a function that parses chunks of any size.
export function eventParser(onEvent) {
  let rest = "";
  let type = "message";
  let data = [];
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) onEvent(type, JSON.parse(data.join("\n")));
        type = "message";
        data = [];
      } else if (line.startsWith("event:")) {
        type = line.slice(6).trim();
      } else if (line.startsWith("data:")) {
        data.push(line.slice(5).replace(/^ /, ""));
      } // other lines are comments: heartbeats of the service
    }
  };
}
