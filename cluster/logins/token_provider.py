"""Hands tokens to Kafka's clients: kafka-python formats what `token` returns, aiokafka and Faust await it."""

import asyncio
from collections.abc import Generator
from typing import Any

import aiokafka.abc
from kafka.net.sasl.oauth import AbstractTokenProvider

from deniable.cluster.logins.mechanisms import TokenLogin
from deniable.cluster.logins.token_sources import current_token, ready_token


class TokenProvider(AbstractTokenProvider, aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc] # no types
    """The provider of one login, for both clients."""

    def __init__(self, login: TokenLogin) -> None:
        self._login = login

    def token(self) -> "PendingToken":
        """Return a token that is waited for when it is used."""
        return PendingToken(self._login)

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions of the login."""
        return dict(getattr(self._login, "token_extensions", None) or {})


class PendingToken:
    """A token that is read when it is formatted or awaited; TokenError."""

    def __init__(self, login: TokenLogin) -> None:
        self._login = login

    def __repr__(self) -> str:
        return "PendingToken(…)"

    def __format__(self, _specification: str) -> str:
        return current_token(self._login).text

    def __await__(self) -> Generator[Any, None, str]:
        return self._without_blocking().__await__()

    async def _without_blocking(self) -> str:
        token = ready_token(self._login)
        if token is None:
            token = await asyncio.to_thread(current_token, self._login)
        return token.text
