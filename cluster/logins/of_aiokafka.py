"""Connections of aiokafka that log in with present secrets, and again before the broker ends their session.

Brokers end a session when its token expires, or after connections.max.reauth.ms (KIP-368). aiokafka would
only notice the closed connection, perhaps within a transaction. Here a connection logs in again in time. No
other request may come between those of a login, so they wait for its end.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

from aiokafka import conn
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import UnsupportedSaslMechanismError
from aiokafka.protocol.admin import SaslAuthenticateRequest, SaslHandShakeRequest

from deniable.cluster.logins.passwords import CurrentPassword
from deniable.cluster.logins.token_provider import TokenProvider

RENEWED_AT = 0.85  # of a session


class RenewedConnection(AIOKafkaConnection):  # type: ignore[misc] # aiokafka has no types
    """A connection like aiokafka's, unless its password or token is one of ours."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._password = keywords.get("sasl_plain_password")
        self._provider = keywords.get("sasl_oauth_token_provider")
        self._session_seconds = 0.0
        self._next: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None
        super().__init__(*arguments, **keywords)

    async def connect(self) -> Any:
        """Connect and log in."""
        await self._read_password()
        streams = await super().connect()
        self._plan()
        return streams

    def send(self, request: Any, expect_response: bool = True) -> Awaitable[Any]:
        """Send a request; while the connection logs in again, afterwards."""
        if isinstance(request, SaslAuthenticateRequest):
            return self._answer(request)
        if isinstance(request, SaslHandShakeRequest):
            return self._agree(request)
        if self._renewal is not None:
            return self._send_later(self._renewal, request, expect_response)
        sent: Awaitable[Any] = super().send(request, expect_response)
        return sent

    def authenticator_oauth(self) -> Any:
        """Log in with a token; aiokafka would go on if the broker refuses it."""
        authenticator = super().authenticator_oauth()
        return _Refusable(authenticator) if self._is_ours() else authenticator

    def close(self, *arguments: Any, **keywords: Any) -> "asyncio.Future[None]":
        """Close it; it logs in no more."""
        if self._next is not None:
            self._next.cancel()
        closed: asyncio.Future[None] = super().close(*arguments, **keywords)
        return closed

    async def _read_password(self) -> None:
        if isinstance(self._password, CurrentPassword):  # a command takes its time
            self._sasl_plain_password = (await asyncio.to_thread(self._password.encode)).decode()

    async def _agree(self, request: SaslHandShakeRequest) -> Any:
        """Raise what the broker accepts instead; aiokafka would leave that out."""
        answer = await super().send(request)
        if answer.error_code == UnsupportedSaslMechanismError.errno:
            raise UnsupportedSaslMechanismError(*answer.enabled_mechanisms)
        return answer

    async def _answer(self, request: SaslAuthenticateRequest) -> Any:
        answer = await super().send(request)
        self._session_seconds = getattr(answer, "session_lifetime_ms", 0) / 1000
        return answer

    async def _send_later(self, renewal: "asyncio.Task[None]", request: Any, expect_response: bool) -> Any:
        await asyncio.wait([renewal])
        return await self.send(request, expect_response)

    def _plan(self) -> None:
        if self._is_ours() and self._session_seconds > 0 and self.connected():
            loop = asyncio.get_running_loop()
            self._next = loop.call_later(RENEWED_AT * self._session_seconds, self._renew)

    def _is_ours(self) -> bool:
        return isinstance(self._password, CurrentPassword) or isinstance(self._provider, TokenProvider)

    def _renew(self) -> None:
        self._renewal = asyncio.get_running_loop().create_task(self._log_in_again())

    async def _log_in_again(self) -> None:
        try:
            await self._read_password()
            await self._do_sasl_handshake()
        except Exception:  # noqa: BLE001 - whatever it is, the client connects anew and reports it then
            self.close()
        finally:
            self._renewal = None
        self._plan()


class _Refusable:
    """OAUTHBEARER: a challenge is a refusal; our answer ends the login (RFC 7628, section 3.2.3)."""

    def __init__(self, authenticator: Any) -> None:
        self._authenticator = authenticator

    async def step(self, payload: bytes | None) -> Any:
        return (b"\x01", True) if payload else await self._authenticator.step(payload)


def renew_sessions() -> None:
    """Let clients of aiokafka in this process open such connections."""
    conn.AIOKafkaConnection = RenewedConnection
