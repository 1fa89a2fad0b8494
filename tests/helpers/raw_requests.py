"""Connections on which tests send requests byte by byte."""

import socket

from helpers.running_service import Running


def connect(service: Running) -> socket.socket:
    """Return a connection to a service."""
    host, port = service.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def received(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)
