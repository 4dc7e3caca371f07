"""The position of a relay, as its consumer group remembers it: an offset, and text beside it. Pure.

Relays write it, and only they may, by the rights to their group. Workers read how far relays have sent.
"""

from typing import Self

import msgspec

METADATA_VERSION = 1
NO_SETTINGS = -1
_FIELDS = ("rewind", "ms", "settings", "sent")


class Position(msgspec.Struct, frozen=True):
    """Where a relay continues.

    Parameters
    ----------
    position : the first offset whose batch may not have been sent.
    rewind : offset to begin to read at.
    watermark_ms : the highest append time before `rewind`, unix milliseconds.
    settings : offset of a record with the settings in force at `rewind`; NO_SETTINGS if that is the log's
        first offset.
    sent_ms : the highest append time before `position`, unix milliseconds: relays have sent all that uploads
        brought to windows that were closed by then.
    """

    position: int
    rewind: int
    watermark_ms: int
    settings: int
    sent_ms: int = 0

    def metadata(self) -> str:
        """Return the text to commit beside `position`."""
        return msgspec.json.encode(
            {"v": METADATA_VERSION}
            | dict(zip(_FIELDS, (self.rewind, self.watermark_ms, self.settings, self.sent_ms), strict=True))
        ).decode()

    @classmethod
    def of(cls, position: int, metadata: str) -> Self:
        """Read a commit.

        Raises
        ------
        ValueError if a relay with this version did not write it.
        """
        try:
            held = msgspec.json.decode(metadata, type=dict[str, int])
            held.setdefault("sent", 0)  # relays before 0.2 did not write it
            known = [held[field] for field in _FIELDS] if held["v"] == METADATA_VERSION else None
        except (msgspec.MsgspecError, KeyError):
            known = None
        if known is None:
            raise ValueError("the committed position is not one of this version of the relay")
        return cls(position, *known)
