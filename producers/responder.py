"""From the true values of one collection to what may leave: a cohort and a randomized report for each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from estimators.bloom import bloom_rows
from estimators.collection import Collection
from estimators.krr import KRR
from estimators.rappor import Rappor
from producers.buckets import Buckets
from producers.inputs import clients_of, texts
from producers.memory import Memory, encode_field
from producers.randomizers import instantaneous, randomize_krr
from producers.randomness import Words
from producers.secret import Secret

Responses = tuple[NDArray[np.uint16], NDArray[np.uint8]]


@dataclass(frozen=True)
class Batch:
    """Checked values, not yet randomized.

    Parameters
    ----------
    count : n, the number of values.
    respond : randomizes a slice of m values, once: cohorts, uint16 (m,), and reports as they are on the wire,
        uint8 (m, bytes of a report).
    """

    count: int
    respond: Callable[[slice], Responses] = field(repr=False)


class Responder(Protocol):
    """Randomizes the values of one collection."""

    @property
    def unknown(self) -> int:
        """Values so far that the collection does not know. It must not leave this machine."""

    def prepare(self, values: object, clients: object) -> Batch:
        """Check values and, unless None, the client of each.

        Raises
        ------
        TypeError if a value or client is of the wrong type, ValueError if there are not as many of both.
        """


class KRRResponder:
    """k-RR has one cohort and no memory: a client changes nothing."""

    def __init__(self, collection: Collection, mechanism: KRR, words: Words) -> None:
        self._buckets = Buckets(collection)
        self._mechanism = mechanism
        self._words = words

    @property
    def unknown(self) -> int:
        """Values so far that the collection does not list."""
        return self._buckets.unknown

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        numbers = self._buckets.find(values)
        clients_of(clients, len(numbers))
        return Batch(len(numbers), lambda part: self._respond(numbers[part]))

    def _respond(self, numbers: NDArray[np.int64]) -> Responses:
        reports = randomize_krr(self._buckets.place(numbers, self._words), self._mechanism, self._words)
        return np.zeros(len(numbers), np.uint16), reports.view(np.uint8).reshape(len(numbers), -1)


class RapporResponder:
    """RAPPOR takes any text."""

    unknown = 0

    def __init__(self, collection: Collection, mechanism: Rappor, secret: Secret, words: Words) -> None:
        self._what = f"values of {collection.name}"
        self._mechanism = mechanism
        self._memory = Memory(secret, collection.name, mechanism, collection.memoize)
        self._words = words

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        words = [value if value.isascii() else _encodable(value) for value in texts(self._what, values)]
        owners = clients_of(clients, len(words))
        if owners is None:
            return Batch(len(words), lambda part: self._respond(words[part], None))
        fields = [encode_field(owner) for owner in owners]
        return Batch(len(words), lambda part: self._respond(words[part], fields[part]))

    def _respond(self, values: list[str], clients: list[bytes] | None) -> Responses:
        cohorts = self._memory.cohorts(clients, len(values), self._words)
        filters = bloom_rows(values, cohorts, self._mechanism)
        responses = self._memory.permanent(filters, clients, values, self._words)
        return cohorts, instantaneous(responses, self._mechanism, self._words)


def _encodable(value: str) -> str:
    # A text with lone surrogates has no UTF-8 to hash. Refusing it would depend on the value, and show it.
    return value.encode("utf-8", "replace").decode()


def responder_of(collection: Collection, secret: Secret, words: Words) -> Responder:
    """Responder for a collection's mechanism; ValueError when it is neither k-RR nor Bloom-filter RAPPOR."""
    match collection.mechanism:
        case Rappor() as mechanism:
            return RapporResponder(collection, mechanism, secret, words)
        case KRR() as mechanism:
            return KRRResponder(collection, mechanism, words)
        case other:
            raise ValueError(f"mechanism of {collection.name} must be k-rr or rappor, got {other.name}")
