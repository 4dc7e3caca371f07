"""Whether an edge takes the parameters of this producer: asked at the start, every minute, and after a 409.

Rule: a producer that cannot read the list works on, unless the list must be signed by a configured key.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from deniable.config.settings.edge_address import EdgeAddress
from deniable.estimators.collection import Collection
from deniable.producers.concurrency.timing import DEFAULT, ProducerTiming
from deniable.producers.errors import DeliveryError, HopelessError
from deniable.producers.transport.agreement import Disagreement, log_changes
from deniable.producers.transport.edge.answers import HttpAnswer
from deniable.producers.transport.edge.collection_list import (
    COLLECTIONS_PATH,
    MOST_LIST_BYTES,
    CollectionListError,
    WrongKeyError,
    edge_disagreements,
    read_list,
)
from deniable.protocol.publication import Publication

AGAIN_SECONDS = 5.0  # at least between two comparisons: each pack may get a 409

_log = logging.getLogger(__name__)


class Getter(Protocol):
    """A connection to an edge."""

    def get(self, path: str, most_bytes: int, etag: str) -> HttpAnswer:
        """Ask for a page."""


class EdgeAgreement:
    """What is known about a producer's collections. One thread at a time compares; any may read.

    Parameters
    ----------
    collections : of the producer.
    edge : that is compared with.
    timing : of the producer's threads.
    """

    def __init__(
        self, collections: Iterable[Collection], edge: EdgeAddress, timing: ProducerTiming = DEFAULT
    ) -> None:
        self._collections = {each.fingerprint: each for each in collections}
        self._edge = edge
        self._seconds = timing.comparison
        self._compared_at = -AGAIN_SECONDS
        self._due = 0.0
        self._etag = ""
        self._listed: Mapping[str, Publication] = {}
        self._unreadable = ""
        self._differing: Mapping[str, Disagreement] = {}
        self.may_send = edge.public_key is None

    @property
    def differing(self) -> Mapping[str, Disagreement]:
        """The collections whose reports the edge rejects, by name."""
        return self._differing

    @property
    def due(self) -> float:
        """When to compare next, monotonic seconds."""
        return self._due

    def compare(self, connection: Getter) -> None:
        """Read the edge's list and log what has changed.

        Raises
        ------
        DeliveryError if the edge does not answer, or if its key is configured and the list is not signed by
        it: then `may_send` is False.
        """
        now = time.monotonic()
        self._compared_at, self._due = now, now + self._seconds
        try:
            answer = connection.get(COLLECTIONS_PATH, MOST_LIST_BYTES, self._etag)
            if answer.status == 304:
                listed = self._listed
            elif answer.status == 200:
                key = None if self._edge.public_key is None else self._edge.key
                listed = read_list(answer.body, key)
            else:
                raise CollectionListError(f"the answer has status {answer.status}")
        except CollectionListError as error:
            self._cannot_read(error)
        except DeliveryError:
            if not self.may_send:
                self._due = 0.0
            raise
        else:
            self._unreadable, self.may_send = "", True
            self._etag, self._listed = answer.headers.get("etag", self._etag), listed
            found = edge_disagreements(self._collections.values(), listed)
            log_changes(self._differing, found, "edge")
            self._differing = found

    def rejected(self, fingerprint: int) -> None:
        """Note that the edge does not know a collection; its list is asked for anew."""
        own = self._collections.get(fingerprint)
        if own is None or own.name in self._differing:
            return
        what = (
            f"the edge counts other parameters of collection '{own.name}', and has rejected reports of it, "
            "which are lost"
        )
        found = {**self._differing, own.name: Disagreement(what, "Update the collection file")}
        log_changes(self._differing, found, "edge")
        self._differing = found
        self._due = min(self._due, self._compared_at + AGAIN_SECONDS)

    def _cannot_read(self, error: CollectionListError) -> None:
        """Keep what was known: nothing has been heard that changes it."""
        if str(error) != self._unreadable:
            _log.info("parameters are not compared with the edge's list of collections: %s", error)
        self._unreadable = str(error)
        if self._edge.public_key is None:
            return
        if isinstance(error, WrongKeyError):
            self.may_send = False
        if not self.may_send:
            self._due = 0.0
            raise HopelessError(
                f"nothing is sent to {self._edge.url}: the signature of its list of collections cannot be "
                f"checked: {error}"
            )
