"""A transport that combines the writes of one iteration of the event loop.

uvicorn writes the head and the body of a response separately. Each write is a system call that wakes the
client, which takes as long as a ranking in a virtual machine.
"""

from asyncio import AbstractEventLoop, BaseProtocol, Transport
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Buffer: TypeAlias = bytes | bytearray | memoryview[Any]

_MAX_BUFFERED_BYTES = 1 << 16


class BufferedTransport(Transport):
    """Delegates to a transport, with one write per iteration of the event loop.

    Parameters
    ----------
    transport
        The transport of the connection.
    loop
        Its event loop.
    """

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._parts: list[Buffer] = []
        self._n_bytes = 0

    def write(self, data: "Buffer") -> None:
        """Write data in the next iteration of the event loop, or at once if the buffer is full."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)
        self._n_bytes += len(data)
        if self._n_bytes > _MAX_BUFFERED_BYTES:  # flow control must notice
            self._flush()

    def _flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._n_bytes = 0
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Write the buffered data and close the connection."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection and discard the buffered data."""
        self._parts.clear()
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the system has not accepted yet."""
        return self._n_bytes + self._transport.get_write_buffer_size()

    # Delegated methods

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection."""
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Return whether the connection is closing or closed."""
        return self._transport.is_closing()

    def is_reading(self) -> bool:
        """Return whether the transport receives data."""
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        """Pause the receiving end."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume the receiving end."""
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the high- and low-water limits of flow control."""
        self._transport.set_write_buffer_limits(high, low)

    def set_protocol(self, protocol: BaseProtocol) -> None:
        """Set another protocol."""
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> BaseProtocol:
        """Return the protocol."""
        return self._transport.get_protocol()
