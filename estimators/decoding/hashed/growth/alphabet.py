"""An alphabet: which bytes may follow a prefix of a text, symbol by symbol."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Self

_ASCII, _LAST = range(0x80), range(0x80, 0xC0)
#: Second bytes of UTF-8 after these first ones; after all others, any of 80 to BF (RFC 3629, section 4).
_SECOND = {0xE0: range(0xA0, 0xC0), 0xED: range(0x80, 0xA0), 0xF0: range(0x90, 0xC0), 0xF4: range(0x80, 0x90)}


@dataclass(frozen=True)
class Alphabet:
    """The symbols of which texts consist, each of one byte or several.

    Parameters
    ----------
    following : the bytes that may come next, by the bytes of an unfinished symbol, empty between symbols. A
        symbol ends where what it has become is no key.
    """

    following: Mapping[bytes, bytes]
    _suffixes: dict[tuple[bytes, int], list[list[bytes]]] = field(default_factory=dict, compare=False)
    _counts: dict[tuple[bytes, int, int], int] = field(default_factory=dict, compare=False)

    @classmethod
    def of_characters(cls, characters: Iterable[str]) -> Self:
        """Build the alphabet of these characters; ValueError if there are none, or one that UTF-8 lacks."""
        following: dict[bytes, set[int]] = {}
        for character in "".join(characters):
            if 0xD800 <= ord(character) <= 0xDFFF:  # no text has a lone surrogate: it is reported as `?`
                raise ValueError(f"alphabet must be characters that UTF-8 has, got U+{ord(character):04X}")
            symbol = character.encode()
            for end, byte in enumerate(symbol):
                following.setdefault(symbol[:end], set()).add(byte)
        if not following:
            raise ValueError("alphabet must be at least 1 character, got 0")
        return cls({start: bytes(sorted(found)) for start, found in following.items()})

    def tail(self, prefix: bytes) -> bytes:
        """Return the unfinished symbol at the end of a prefix; empty if there is none."""
        tail = b""
        for place in range(len(prefix)):
            tail += prefix[place : place + 1]
            tail = tail if tail in self.following else b""
        return tail

    def suffixes(self, tail: bytes, most_bytes: int) -> list[list[bytes]]:
        """Return all ways in which a prefix goes on, by their number of bytes, from 0 to `most_bytes`.

        Those of fewer than `most_bytes` end a text, so they end a symbol too.

        Parameters
        ----------
        tail : of the prefix.
        most_bytes : >= 1.

        Returns
        -------
        Lists of distinct suffixes, `most_bytes` + 1 of them, to be read only.
        """
        if (known := self._suffixes.get((tail, most_bytes))) is not None:
            return known
        found: list[list[bytes]] = []
        open_ends = [(b"", tail)]
        for _ in range(most_bytes):
            found.append([suffix for suffix, rest in open_ends if not rest])
            open_ends = [
                (suffix + bytes([byte]), self._after(rest, byte))
                for suffix, rest in open_ends
                for byte in self.following[rest]
            ]
        found.append([suffix for suffix, _ in open_ends])
        self._suffixes[tail, most_bytes] = found
        return found

    def count(self, tail: bytes, most_bytes: int, most: int) -> int:
        """Return the number of `suffixes`, without building them; `most` + 1 if it is above `most`.

        Every end goes on, so the number never falls as bytes are added: counting stops above `most`.

        Parameters
        ----------
        tail, most_bytes : see `suffixes`.
        most : the largest number of interest, >= 1.
        """
        if (known := self._counts.get((tail, most_bytes, most))) is not None:
            return known
        ends, found = {tail: 1}, 0
        for _ in range(most_bytes):
            if found + sum(ends.values()) > most:
                break
            found += ends.get(b"", 0)
            following: dict[bytes, int] = {}
            for rest, number in ends.items():
                for byte in self.following[rest]:
                    after = self._after(rest, byte)
                    following[after] = following.get(after, 0) + number
            ends = following
        counted = min(found + sum(ends.values()), most + 1)
        self._counts[tail, most_bytes, most] = counted
        return counted

    def _after(self, tail: bytes, byte: int) -> bytes:
        longer = tail + bytes([byte])
        return longer if longer in self.following else b""


@cache
def any_text() -> Alphabet:
    """Return the alphabet of all texts: the well-formed UTF-8 of any language."""
    following = {b"": bytes([*_ASCII, *range(0xC2, 0xF5)])}
    for first in range(0xC2, 0xF5):
        lead, second = bytes([first]), _SECOND.get(first, _LAST)
        following[lead] = bytes(second)
        if first >= 0xE0:
            following |= {lead + bytes([each]): bytes(_LAST) for each in second}
        if first >= 0xF0:
            following |= {lead + bytes([each, other]): bytes(_LAST) for each in second for other in _LAST}
    return Alphabet(following)


def alphabet_of(characters: str) -> Alphabet:
    """Return the alphabet of these characters; that of any text if there are none."""
    return Alphabet.of_characters(characters) if characters else any_text()


def any_bytes() -> Alphabet:
    """Return the alphabet whose symbols are all 256 bytes: for strings that are no text."""
    return Alphabet({b"": bytes(range(256))})
