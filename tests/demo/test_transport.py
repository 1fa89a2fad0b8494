"""The transport reuses connections, and opens new ones after the service closed them."""

import asyncio

import pytest

from banditrank._demo.transport import KeepAliveTransport
from banditrank.client._asynchronous import AsyncClient
from banditrank.errors import ServiceError

ANSWER = b'{"surfaces": []}'
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(ANSWER),
    ANSWER,
)


async def _request_twice(*, closing: bool) -> int:
    """Send two requests to a server; return the number of connections."""
    connections, ended = [], []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        ended.append(asyncio.current_task())
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(RESPONSE)
            if closing:
                break
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with AsyncClient(f"http://127.0.0.1:{port}", transport=KeepAliveTransport()) as client:
            assert await client.surfaces() == []
            if closing:
                await connections[0].wait_closed()
                await asyncio.sleep(0)  # the client sees the closed connection
            assert await client.surfaces() == []
        await asyncio.gather(*ended)
    return len(connections)


@pytest.mark.parametrize(("closing", "connections"), [(False, 1), (True, 2)])
def test_a_connection_is_reused_until_it_is_closed(closing: bool, connections: int) -> None:  # noqa: FBT001
    assert asyncio.run(_request_twice(closing=closing)) == connections


def test_a_service_without_a_response_is_a_timeout() -> None:
    ended = []

    async def only_listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.current_task())
        await reader.read()
        writer.close()
        await writer.wait_closed()

    async def ask() -> None:
        async with await asyncio.start_server(only_listen, "127.0.0.1", 0) as server:
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with AsyncClient(
                address, timeout_seconds=0.05, max_retries=0, transport=KeepAliveTransport()
            ) as client:
                with pytest.raises(ServiceError, match=r"cannot be reached: no response within 0\.05 s"):
                    await client.surfaces()
            await asyncio.gather(*ended)

    asyncio.run(ask())


def test_an_unreachable_service_is_an_error() -> None:
    async def ask() -> None:
        async with AsyncClient("http://127.0.0.1:9", max_retries=0, transport=KeepAliveTransport()) as client:
            await client.surfaces()

    with pytest.raises(ServiceError, match="the service cannot be reached"):
        asyncio.run(ask())
