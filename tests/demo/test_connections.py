"""Connections of the demo's users are kept, and made anew when the service closed them."""

import asyncio

import pytest

from banditrank.client.asynchronous import AsyncClient
from banditrank.client.retries import ServiceError
from banditrank.demo.connections import KeptConnections

ANSWER = b'{"surfaces": []}'
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(ANSWER),
    ANSWER,
)


async def _ask_twice(*, closing: bool) -> int:
    """Ask a server two things; return on how many connections they came."""
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
        async with AsyncClient(f"http://127.0.0.1:{port}", transport=KeptConnections()) as client:
            assert await client.surfaces() == []
            if closing:
                await connections[0].wait_closed()
                await asyncio.sleep(0)  # what was closed there is seen here
            assert await client.surfaces() == []
        await asyncio.gather(*ended)
    return len(connections)


@pytest.mark.parametrize(("closing", "connections"), [(False, 1), (True, 2)])
def test_a_connection_is_kept_until_it_is_closed(closing: bool, connections: int) -> None:  # noqa: FBT001
    assert asyncio.run(_ask_twice(closing=closing)) == connections


def test_a_service_that_does_not_answer_is_given_up() -> None:
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
                address, timeout_seconds=0.05, max_retries=0, transport=KeptConnections()
            ) as client:
                with pytest.raises(ServiceError, match=r"cannot be reached: no answer within 0\.05 s"):
                    await client.surfaces()
            await asyncio.gather(*ended)

    asyncio.run(ask())


def test_a_service_that_is_not_there_is_an_error_as_any() -> None:
    async def ask() -> None:
        async with AsyncClient("http://127.0.0.1:9", max_retries=0, transport=KeptConnections()) as client:
            await client.surfaces()

    with pytest.raises(ServiceError, match="the service cannot be reached"):
        asyncio.run(ask())
