"""Raw connections to a service."""

import socket

from helpers.running_service import TIMEOUT_SECONDS, Running


def connect(service: Running) -> socket.socket:
    """Return a connection to a service."""
    host, port = service.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)


def received(connection: socket.socket) -> bytes:
    """Return all bytes until the other side closes."""
    chunks = []
    while chunk := connection.recv(65536):
        chunks.append(chunk)
    return b"".join(chunks)
