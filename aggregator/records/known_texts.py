"""The texts that growing has found and lists: a row of `state`, so that a successor continues with them.

Rule: a look at a final window finds texts, and estimates of later windows list them. A text is listed in the
windows of which one of the last `windows` looks before has found it; then it is forgotten. If it is found
once more, that is another discovery.
"""

from collections.abc import Iterable

import msgspec

from deniable.aggregator.ledger.row_values import RowError

#: Figure of an estimate's diagnostics: texts that growing has found, and the estimate lists.
FOUND_TEXTS = "found_texts"
_VERSION = b"\x01"
MOST_TEXTS = 1000  # listed; a row with texts of 255 bytes stays below Kafka's 1 MiB


class KnownText(msgspec.Struct, frozen=True):
    """A text that was found.

    Parameters
    ----------
    prefix : in bytes, as long as the last level of the tree, or a shorter whole text.
    discovered_at : end of the window whose look found it first, unix seconds.
    found_at : the same of the last look that found it.
    """

    prefix: bytes
    discovered_at: int
    found_at: int


class KnownTexts(msgspec.Struct, frozen=True):
    """What is known after a look.

    Parameters
    ----------
    looked_at : end of the last window that was looked at, unix seconds; 0 before the first look.
    texts : most frequent ones of the last look first.
    """

    looked_at: int = 0
    texts: tuple[KnownText, ...] = ()

    def listed(self, window_start: int, kept_seconds: int) -> tuple[KnownText, ...]:
        """Return the texts that the estimate of a window lists, from looks before it alone.

        Parameters
        ----------
        window_start : unix seconds.
        kept_seconds : `windows` times the length of a window.
        """
        return tuple(
            each for each in self.texts if each.discovered_at <= window_start < each.found_at + kept_seconds
        )

    def after_look(self, prefixes: Iterable[bytes], window_end: int, kept_seconds: int) -> "KnownTexts":
        """Return what is known once a look at a window has found these prefixes, at most MOST_TEXTS.

        Parameters
        ----------
        prefixes : distinct, most frequent first.
        window_end : of the window, unix seconds, after all looks before.
        kept_seconds : as of `listed`.
        """
        former = {each.prefix: each for each in self.listed(window_end, kept_seconds)}
        found = [
            KnownText(each, former[each].discovered_at if each in former else window_end, window_end)
            for each in prefixes
        ]
        refound = {each.prefix for each in found}
        kept = sorted(
            (each for each in former.values() if each.prefix not in refound), key=lambda each: -each.found_at
        )
        return KnownTexts(window_end, tuple([*found, *kept][:MOST_TEXTS]))


def encode_known_texts(known: KnownTexts) -> bytes:
    """Bytes of the row: its version, then JSON."""
    return _VERSION + msgspec.json.encode(known)


def decode_known_texts(data: bytes) -> KnownTexts:
    """Inverse of `encode_known_texts`; RowError if the bytes are no such row of this version."""
    if data[:1] != _VERSION:
        raise RowError(
            "row of known texts is of another version: run the deniable that wrote it, or a newer one"
        )
    try:
        return msgspec.json.decode(data[1:], type=KnownTexts)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RowError("row of known texts is damaged") from error
