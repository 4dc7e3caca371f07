"""Responders of listed values: k-RR and subset selection, afresh, and k-RR with permanent responses."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.subset_selection import SubsetSelection
from deniable.producers.randomization.permanent_responses import Blocks, Memory, number_blocks
from deniable.producers.randomization.randomizers import randomize_krr, randomize_subsets
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.batch import Batch, Responses, chunks, in_one_cohort
from deniable.producers.responders.buckets import Buckets
from deniable.producers.responders.validation import clients_of
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import bucket_dtype, report_bytes

NUMBER_BYTES = 8


class FreshResponder:
    """Listed values or numbers, each randomized afresh: in one cohort, and clients do not matter.

    Parameters
    ----------
    collection : of the values.
    randomize : returns reports in wire format, uint8 (n, bytes of a report), of true buckets, int64 (n,).
    drawn_bytes : memory that it takes for a report.
    words : source of buckets for values that have none.
    """

    def __init__(
        self,
        collection: Collection,
        randomize: Callable[[NDArray[np.int64]], NDArray[np.uint8]],
        drawn_bytes: int,
        words: Words,
    ) -> None:
        mechanism = collection.mechanism
        self._buckets = Buckets(collection, mechanism.domain_size)
        self._report_bytes = report_bytes(mechanism.wire_number, mechanism.width)
        self._randomize = randomize
        self._drawn_bytes = drawn_bytes
        self._words = words

    @property
    def unknown(self) -> int:
        """Values so far that the collection does not list."""
        return self._buckets.unknown

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        numbers = self._buckets.find(values)
        owners = clients_of(clients, len(numbers))
        return Batch(len(numbers), owners, lambda part: self._respond(numbers[part]))

    def _respond(self, numbers: NDArray[np.int64]) -> Responses:
        settled = self._buckets.settle(numbers)
        rows = np.empty((len(numbers), self._report_bytes), np.uint8)
        for part in chunks(len(numbers), self._drawn_bytes):
            rows[part] = self._randomize(self._buckets.place(settled[part], self._words))
        return np.zeros(len(rows), np.uint16), rows


def krr_responder(collection: Collection, mechanism: KRR, words: Words) -> FreshResponder:
    """Return the responder of k-RR."""

    def randomize(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        reports = randomize_krr(numbers, mechanism, words)
        return reports.view(np.uint8).reshape(len(reports), reports.itemsize)

    return FreshResponder(collection, randomize, NUMBER_BYTES, words)


def subset_responder(collection: Collection, mechanism: SubsetSelection, words: Words) -> FreshResponder:
    """Return the responder of subset selection, which draws a word for each bit."""
    randomize = partial(randomize_subsets, mechanism=mechanism, words=words)
    return FreshResponder(collection, randomize, NUMBER_BYTES * mechanism.bits, words)


class LongitudinalResponder:
    """Longitudinal k-RR: a client's permanent bucket for each value, randomized again for each report.

    Responses are always memoized. All values that are not listed count as one value.
    """

    def __init__(
        self, collection: Collection, mechanism: LongitudinalKRR, secret: Secret, words: Words
    ) -> None:
        self._buckets = Buckets(collection, mechanism.k)
        self._mechanism = mechanism
        parameters = ("k-rr-longitudinal", mechanism.permanent.threshold, *self._buckets.meaning)
        self._memory = Memory(secret, collection.name, parameters, memoize=True)
        self._words = words

    @property
    def unknown(self) -> int:
        """Values so far that the collection does not list."""
        return self._buckets.unknown

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        numbers = self._buckets.find(values)
        owners = clients_of(clients, len(numbers))
        return Batch(len(numbers), owners, lambda part: self._respond(numbers[part], owners and owners[part]))

    def _respond(self, numbers: NDArray[np.int64], clients: list[str] | None) -> Responses:
        settled = self._buckets.settle(numbers)
        owners = None if clients is None else self._memory.digest(clients)
        reports = np.empty(len(numbers), bucket_dtype(self._mechanism.k))
        for part in chunks(len(numbers), NUMBER_BYTES):
            reports[part] = self._reports(settled[part], None if owners is None else owners[part])
        return in_one_cohort(reports)

    def _reports(self, numbers: NDArray[np.int64], owners: Blocks | None) -> NDArray[np.unsignedinteger]:
        kept = self._memory.words(owners, lambda: [number_blocks(numbers)], self._words)
        # An UNKNOWN value gets its bucket from the same words: one value, one response.
        placed = self._buckets.place(numbers, kept)
        responses = randomize_krr(placed, self._mechanism.permanent, kept)
        return randomize_krr(responses.astype(np.int64), self._mechanism.instantaneous, self._words)
