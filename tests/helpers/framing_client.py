"""Client that sends framing vectors and checks that the server serves only the requests they contain."""

import json
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import HTTPConnection
from typing import Any

from helpers.framing_vectors import PROBE, PROBE_PATH, VECTORS, Request, Vector

Address = tuple[str, int]

TIMEOUT_SECONDS = 20.0  # of a server that neither responds nor closes
PAUSE_SECONDS = 0.005  # between packets, for the server to read them one by one
RECORDS_PATH = "/records"  # of the recording application: requests since the last call
RECORDED = "x-recorded"  # header of its responses: the `key` of the request
HEALTHY = b'"status":"ok"'  # in the service's response to `PROBE`
PROBE_REQUEST = Request("GET", PROBE_PATH)


@dataclass(frozen=True)
class Response:
    """A final response of a server."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Conversation:
    """Responses on one connection."""

    responses: list[Response] = field(default_factory=list)
    rest: bytes = b""  # after the last complete response
    timed_out: bool = False


def converse(address: Address, vector: Vector) -> Conversation:
    """Send a vector and then `PROBE`, and return all responses until the server closes."""
    received = bytearray()
    timed_out = False
    with socket.create_connection(address, timeout=TIMEOUT_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for packet in vector.packets:
                connection.sendall(packet)
                time.sleep(PAUSE_SECONDS)
            if vector.half_closes:
                connection.shutdown(socket.SHUT_WR)
            else:
                connection.sendall(PROBE)
        except OSError:
            pass  # the server has closed; its responses can still be read
        try:
            while part := connection.recv(1 << 16):
                received += part
        except ConnectionError:
            pass
        except TimeoutError:
            timed_out = True
    methods = [one.method for one in vector.requests]
    responses, rest = parse_responses(bytes(received), methods)
    return Conversation(responses, rest, timed_out)


def parse_responses(data: bytes, methods: Sequence[str]) -> tuple[list[Response], bytes]:
    """Return the final responses to requests with these methods, and the bytes behind the last of them."""
    responses: list[Response] = []
    while data:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end or not head.startswith(b"HTTP/1."):
            break
        line, *lines = head.decode("latin-1").split("\r\n")
        status = int(line.split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
        if 100 <= status < 200 and status != 101:
            data = rest
            continue
        method = methods[len(responses)] if len(responses) < len(methods) else "GET"
        if method == "HEAD":
            length = 0
        elif headers.get("transfer-encoding", "").lower() == "chunked":
            body, data = _unchunk(rest)
            responses.append(Response(status, headers, body))
            continue
        elif "content-length" in headers:
            length = int(headers["content-length"])
        else:  # the body ends with the connection
            length = len(rest)
        if len(rest) < length:
            break
        responses.append(Response(status, headers, rest[:length]))
        data = rest[length:]
    return responses, data


def _unchunk(data: bytes) -> tuple[bytes, bytes]:
    """Return a chunked body and the bytes behind it."""
    body = bytearray()
    while True:
        line, _, data = data.partition(b"\r\n")
        size = int(line or b"0", 16)
        body += data[:size]
        data = data[size + 2 :]
        if not size:
            return bytes(body), data


def key(request: Request) -> str:
    """Return the response of the recording application to a request: a hash that identifies it."""
    return sha256(repr(request).encode()).hexdigest()


def take_records(address: Address) -> list[dict[str, Any]]:
    """Return the records of the recording application since the last call."""
    connection = HTTPConnection(*address, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", RECORDS_PATH)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def violations_by_recorder(address: Address, vector: Vector) -> list[str]:
    """Send a vector to a server of the recording application; return which rules were broken."""
    take_records(address)
    conversation = converse(address, vector)
    return judge_records(vector, conversation, take_records(address))


def judge_records(vector: Vector, conversation: Conversation, records: list[dict[str, Any]]) -> list[str]:
    """Return which rules a conversation breaks, given what reached the recording application."""
    found = []
    if conversation.timed_out:
        found.append("neither answered nor closed")
    complete = [_request(one) for one in records if one["complete"]]
    begun = [_request(one) for one in records if not one["complete"]]
    is_probed = complete[-1:] == [PROBE_REQUEST]
    seen = complete[:-1] if is_probed else complete
    if tuple(seen) != vector.requests[: len(seen)]:
        found.append(f"request accepted that was not sent: {_format_requests(seen)}")
    allowed = (*vector.requests[len(seen) :][:1], *([vector.begun] if vector.begun else []))
    heads = {(one.method, one.path) for one in allowed}
    unsent = [one for one in begun if (one.method, one.path) not in heads]
    if unsent:
        found.append(f"head accepted that was not sent: {_format_requests(unsent)}")
    if any(tuple(header) in vector.trailers for one in records for header in one["headers"]):
        found.append("trailer accepted as a header")
    if len(seen) < vector.n_served:
        statuses = [one.status for one in conversation.responses]
        found.append(f"legitimate request refused: {len(seen)} of {vector.n_served} served, got {statuses}")
    if vector.keeps is False and is_probed:
        found.append("connection kept")
    if vector.keeps and not is_probed:
        found.append("connection not kept")
    return found + _judge_answers(complete, conversation)


def violations_by_service(address: Address, vector: Vector) -> list[str]:
    """Send a vector to the service; return which rules its responses break."""
    conversation = converse(address, vector)
    responses = conversation.responses
    is_probed = bool(responses) and responses[-1].status == 200 and HEALTHY in responses[-1].body
    answers = responses[:-1] if is_probed else responses
    found = []
    if conversation.timed_out:
        found.append("neither answered nor closed")
    if conversation.rest:
        found.append(f"bytes behind the last response: {conversation.rest[:40]!r}")
    beyond = [one.status for one in answers[len(vector.requests) :]]
    if len(beyond) > 1 or any(status < 400 for status in beyond):
        found.append(f"answer to what was not sent as a request: {beyond}")
    if vector.refused_by_application and any(one.status < 400 for one in answers):
        found.append("request served that must be refused")
    if len(answers) < vector.n_served:
        found.append(f"legitimate request refused: {len(answers)} answers of {vector.n_served}")
    if vector.keeps is False and is_probed:
        found.append("connection kept")
    says_close = any(one.headers.get("connection") == "close" for one in answers)
    if vector.keeps and not is_probed and not says_close:
        found.append("connection not kept")
    return found


def _judge_answers(complete: list[Request], conversation: Conversation) -> list[str]:
    """Check that answers are those to the recorded requests in their order, then at most one refusal."""
    found = []
    answers = [one.headers[RECORDED] for one in conversation.responses if RECORDED in one.headers]
    if answers != [key(one) for one in complete][: len(answers)]:
        found.append("answer to another request")
    refusals = [one for one in conversation.responses if RECORDED not in one.headers]
    if len(refusals) > 1 or refusals != conversation.responses[len(answers) :]:
        found.append("more than one refusal, or not the last response")
    if any(one.status < 400 for one in refusals):
        found.append(f"neither an answer nor a refusal: {refusals[0].status}")
    if conversation.rest:
        found.append(f"bytes behind the last response: {conversation.rest[:40]!r}")
    return found


def _request(record: dict[str, Any]) -> Request:
    return Request(record["method"], record["path"], record["body"].encode("latin-1"))


def _format_requests(requests: list[Request]) -> str:
    return ", ".join(f"{one.method} {one.path[:40]} ({len(one.body)} bytes)" for one in requests)


if __name__ == "__main__":  # python -m helpers.framing_client HOST PORT: the recording application's address
    n_failed = 0
    for vector in VECTORS:
        found = violations_by_recorder((sys.argv[1], int(sys.argv[2])), vector)
        n_failed += bool(found)
        sys.stdout.writelines(f"{vector.name} | {one}\n" for one in found)
    sys.exit(f"{n_failed} of {len(VECTORS)} vectors failed" if n_failed else 0)
