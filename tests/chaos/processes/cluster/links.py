"""The links between the brokers of a cluster: small TCP proxies that can be cut and healed.

A cut link drops nothing: bytes wait, as with lost packets that are sent again, and arrive when it heals.
"""

import asyncio
import re
import struct
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

HEAD = struct.Struct(">ihhih")  # of a request: size, API, version, correlation id, length of the client's id
CHUNK_BYTES = 1 << 16

T = TypeVar("T")


class Cut(NamedTuple):
    """Cuts connections from brokers of `sources` to brokers of `targets`, perhaps only those that fetch."""

    sources: frozenset[int]
    targets: frozenset[int]
    only_fetches: bool = False


@dataclass(eq=False)
class Connection:
    """A connection between brokers; `client` is the id in its first request, such as `broker-2-fetcher-0`."""

    client: str
    target: int
    is_whole: asyncio.Event = field(default_factory=asyncio.Event)

    def show(self, cuts: Iterable[Cut]) -> None:
        """Let bytes pass unless one of these cuts it. A broker always reaches itself."""
        number = re.search(r"\d+", self.client)
        source = int(number[0]) if number else self.target
        is_cut = source != self.target and any(
            source in cut.sources
            and self.target in cut.targets
            and ("fetcher" in self.client or not cut.only_fetches)
            for cut in cuts
        )
        (self.is_whole.clear if is_cut else self.is_whole.set)()


class Links(threading.Thread):
    """Proxies of all brokers' listeners for each other, served by this thread until `close`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.connections: set[Connection] = set()
        self._cuts: list[Cut] = []
        self._loop = asyncio.new_event_loop()
        self._closed = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        self._loop.run_until_complete(self._serve_until_closed())
        self._loop.close()

    def serve(self, port: int, target: int, target_port: int) -> None:
        """Listen on a port for connections to a listener of the broker `target`."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await self._carry(reader, writer, target, target_port)
            finally:
                self._tasks.discard(task)
                writer.close()

        self._servers.append(self._call(asyncio.start_server(accept, "127.0.0.1", port)))

    def cut(self, *cuts: Cut) -> None:
        """Cut these, and nothing else; without any, all links are whole again."""
        self._call(self._show(list(cuts)))

    def close(self) -> None:
        """Close all connections and listeners."""
        self._loop.call_soon_threadsafe(self._closed.set)
        self.join()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    async def _serve_until_closed(self) -> None:
        await self._closed.wait()
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _show(self, cuts: list[Cut]) -> None:
        self._cuts = cuts
        for connection in self.connections:
            connection.show(cuts)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int, target_port: int
    ) -> None:
        head = await reader.readexactly(HEAD.size)
        name = await reader.readexactly(max(0, HEAD.unpack(head)[-1]))
        connection = Connection(name.decode(), target)
        connection.show(self._cuts)
        self.connections.add(connection)
        try:
            await connection.is_whole.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target_port)
            try:
                far_writer.write(head + name)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(_pump(connection, reader, far_writer))
                    tasks.create_task(_pump(connection, far_reader, writer))
            except* OSError:
                pass
            finally:
                far_writer.close()
        finally:
            self.connections.discard(connection)


async def _pump(connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on while the link is whole; raise ConnectionResetError at their end, to end both ways."""
    while data := await reader.read(CHUNK_BYTES):
        await connection.is_whole.wait()
        writer.write(data)
        await writer.drain()
    raise ConnectionResetError
