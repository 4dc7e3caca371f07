"""The settings of this relay's collection file, and those that it may append to a log. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from deniable.relay.control import RelaySettings


@dataclass(frozen=True)
class Following:
    """What a relay appends to a log, if anything, and what its file asks for in vain.

    Parameters
    ----------
    settings : to append; None if the log's are as new.
    returned : fingerprints of collections that have ended on this log, and are left out.
    differs : whether the file has other settings than the log under the same revision, which stay unused.
    """

    settings: RelaySettings | None = None
    returned: tuple[int, ...] = ()
    differs: bool = False


def following(own: RelaySettings, held: RelaySettings | None) -> Following:
    """Return what a relay with these settings appends to a log that has others in force.

    Parameters
    ----------
    own : of the collection file.
    held : in force; None if the log has none yet.
    """
    if held is None:
        return Following(own)
    if own.revision < held.revision:
        return Following()
    ended = {*held.retired, *(each.fingerprint for each in held.collections)}
    ended -= {each.fingerprint for each in own.collections} - {*held.retired}
    taken = tuple(each for each in own.collections if each.fingerprint not in held.retired)
    returned = tuple(each.fingerprint for each in own.collections if each.fingerprint in held.retired)
    wanted = msgspec.structs.replace(own, collections=taken, retired=tuple(sorted(ended)))
    if own.revision == held.revision:
        return Following(differs=wanted != held)
    return Following(wanted, returned)


def names_of(fingerprints: Iterable[int], names: Mapping[int, str]) -> str:
    """Return the names of collections for messages."""
    return ", ".join(names.get(each, f"{each:016x}") for each in fingerprints)
