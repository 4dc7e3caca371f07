"""Passwords as Kafka's clients take them, each read when a connection logs in."""

from typing import Protocol


class _Holder(Protocol):
    def current_password(self) -> str: ...


class CurrentPassword:
    """A password for Kafka's clients that is read from its source whenever they encode it for a connection.

    Parameters
    ----------
    holder : whose `current_password` it is.
    """

    __slots__ = ("_holder",)

    def __init__(self, holder: _Holder) -> None:
        self._holder = holder

    def __repr__(self) -> str:
        return "CurrentPassword(…)"

    def encode(self, encoding: str = "utf-8") -> bytes:
        """Return the bytes of the present password; SecurityError if its source cannot be used."""
        return self._holder.current_password().encode(encoding)
