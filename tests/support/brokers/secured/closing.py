"""Close sockets that aiokafka abandons: it drops a failed connection before its TLS socket is closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from aiokafka.conn import AIOKafkaConnection


@asynccontextmanager
async def closing_connections() -> AsyncIterator[None]:
    """Close abandoned connections at the end of the block; their sockets would outlive the event loop."""
    closed: list[asyncio.Future[None]] = []
    close = AIOKafkaConnection.close

    def abort(self: Any, *arguments: Any, **keywords: Any) -> "asyncio.Future[None]":
        writer = self._writer
        future: asyncio.Future[None] = close(self, *arguments, **keywords)
        if writer is not None:
            writer.transport.abort()
            closed.append(future)
        return future

    with patch.object(AIOKafkaConnection, "close", abort):
        try:
            yield
        finally:
            await asyncio.gather(*closed)
