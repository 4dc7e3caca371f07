"""aiokafka lets go of a connection that failed before its socket is closed, which in TLS takes an answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from aiokafka.conn import AIOKafkaConnection


@asynccontextmanager
async def closing_connections() -> AsyncIterator[None]:
    """Whatever is let go of inside is closed at the end; else its socket would outlive the event loop."""
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
