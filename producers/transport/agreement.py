"""Whether the workers count the same parameters as this producer: asked at the start and every minute.

Rule: nothing waits for the answer but the thread that asks. A producer that cannot read it works on.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from deniable.estimators.collection import Collection
from deniable.producers.concurrency.timing import DEFAULT, ProducerTiming
from deniable.producers.transport.parameter_differences import differences
from deniable.protocol.publication import Publication, are_complete

if TYPE_CHECKING:
    from deniable.cluster.connection.requests import Manager
    from deniable.cluster.reading.publication_reader import PublicationReader

HEADER = "collection"  # of a record of `reports`, with the name of the pack's collection
REMEDY = "Use the workers' collection file here"
REMEDY_IF_ABSENT = "Add it to the workers' collection file, raise its revision, and restart them with it"

_log = logging.getLogger(__name__)


class Disagreement(NamedTuple):
    """Why the workers reject the reports of a collection, and the remedy; each one sentence."""

    what: str
    remedy: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.what}. {self.remedy}"


def disagreements(
    collections: Iterable[Collection], published: Mapping[str, Publication]
) -> dict[str, Disagreement]:
    """Compare collections with what the workers publish.

    Returns
    -------
    An entry for each collection whose reports the workers reject, by name. Empty if nothing is published: no
    worker has started yet.
    """
    found = {}
    is_complete = are_complete(published.values())
    for own in collections:
        theirs = published.get(own.name)
        if theirs is None and is_complete:
            what = f"the workers do not count collection '{own.name}', and reject its reports"
            found[own.name] = Disagreement(what, REMEDY_IF_ABSENT)
        elif theirs is not None and (differing := differences(own, theirs)):
            what = f"the workers reject reports of collection '{own.name}', whose parameters differ"
            found[own.name] = Disagreement(f"{what}: {'; '.join(differing)}", REMEDY)
    return found


def log_changes(
    before: Mapping[str, Disagreement], now: Mapping[str, Disagreement], whose: str = "workers"
) -> None:
    """Log each disagreement that is new, and each that is gone.

    Parameters
    ----------
    before, now : by name of the collection.
    whose : parameters were compared with.
    """
    for name, disagreement in now.items():
        if before.get(name) != disagreement:
            _log.error("%s", disagreement)
    owners = f"{whose}'" if whose.endswith("s") else f"{whose}'s"
    for name in before.keys() - now.keys():
        _log.info("collection '%s' has the %s parameters again", name, owners)


class Agreement:
    """What is known about a producer's collections. One thread calls `compare`; any may read.

    Parameters
    ----------
    collections : of the producer.
    topic : name of the topic `collections`; None to compare nothing.
    timing : of the producer's threads.
    """

    def __init__(
        self, collections: Iterable[Collection], topic: str | None, timing: ProducerTiming = DEFAULT
    ) -> None:
        self._collections = {each.fingerprint: each for each in collections}
        self._topic = topic
        self._reader: PublicationReader | None = None
        self._seconds = timing.comparison
        self._due = 0.0
        self._unreadable = ""
        self._agreed: frozenset[str] = frozenset()
        self._differing: Mapping[str, Disagreement] = {}

    @property
    def differing(self) -> Mapping[str, Disagreement]:
        """The collections whose reports the workers reject, by name."""
        return self._differing

    def compare(self, manager: "Manager") -> None:
        """Read what the workers publish, unless that was done within the last minute; log what has changed.

        Parameters
        ----------
        manager : of a client that is connected.
        """
        if self._topic is None or time.monotonic() < self._due:
            return
        from deniable.cluster.reading.publication_reader import PublicationReader, UnreadableError

        self._reader = self._reader or PublicationReader(self._topic)
        self._due = time.monotonic() + self._seconds
        try:
            published = self._reader.read(manager)
        except UnreadableError as error:
            self._cannot_read(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, packs must still be sent
            self._cannot_read(type(error).__name__)
        else:
            self._unreadable = ""
            self._learn(published)

    def headers(self, fingerprint: int) -> list[tuple[str, bytes]]:
        """Return a pack's headers: the collection's name, unless the workers are known to count it.

        It lets a worker that rejects the pack say why. It depends on no value.
        """
        own = self._collections.get(fingerprint)
        if self._topic is None or own is None or own.name in self._agreed:
            return []
        return [(HEADER, own.name.encode())]

    def _learn(self, published: Mapping[str, Publication]) -> None:
        now = disagreements(self._collections.values(), published)
        log_changes(self._differing, now)
        self._differing = now
        self._agreed = frozenset(
            own.name for own in self._collections.values() if own.name in published.keys() - now.keys()
        )

    def _cannot_read(self, why: str) -> None:
        """Keep what was known: nothing has been heard that changes it."""
        self._agreed = frozenset()
        if why != self._unreadable:
            _log.info("parameters are not compared with the workers': %s", why)
        self._unreadable = why
