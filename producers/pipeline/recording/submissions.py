"""Randomize checked values and make submissions of them: the one way from true values to reports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.allowance import Allowance
from deniable.producers.concurrency.clock import Clock
from deniable.producers.pipeline.queueing.submission import (
    PendingReceipt,
    SeenReports,
    SharedReceipt,
    SingleReport,
    Submission,
)
from deniable.producers.randomization.prf import ClientKeys
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.batch import Batch, parts
from deniable.producers.responders.factory import responder_of
from deniable.producers.responders.single_value import value_rule
from deniable.producers.responders.validation import Clients, Times, window_starts
from deniable.producers.storage.input_progress import InputProgress
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import MAX_WINDOW_START


class Randomization:
    """Checks and randomizes values of several collections. Any thread may use it.

    Parameters
    ----------
    allowances : by name of their collection.
    secret : that permanent responses and keys of clients are derived from.
    words : source of fresh randomness.
    clock : unix seconds of values without a time.
    """

    def __init__(
        self, allowances: Mapping[str, Allowance], secret: Secret, words: Words, clock: Clock
    ) -> None:
        self.allowances = allowances
        self._client_keys = ClientKeys(secret)
        self._clock = clock
        self._responders = {
            name: responder_of(allowance.collection, secret, words) for name, allowance in allowances.items()
        }
        self._rules = {name: value_rule(allowance.collection).exact for name, allowance in allowances.items()}

    def unknown(self) -> dict[str, int]:
        """Return the number of unknown values by collection. It depends on true values: never export it."""
        return {name: responder.unknown for name, responder in self._responders.items()}

    def unknown_collection(self) -> ValueError:
        """Return the error to raise if there is no such collection."""
        return ValueError(f"collection must be one of {', '.join(self.allowances)}")

    def single(self, collection: str, value: object, client: object, at: object) -> SingleReport | None:
        """Return one value, checked and not yet randomized; None if it is several, or anything is unusual.

        Parameters
        ----------
        collection, value, client, at : as for `Producer.report`.
        """
        if type(value) is not self._rules.get(collection) or not isinstance(value, str | int | float):
            return None
        if client is None:
            self.allowances[collection].check_own_clients()
        elif type(client) is not str or not client:
            return None
        moment = self._clock.unix() if at is None else at
        if (
            not isinstance(moment, float | int)
            or isinstance(moment, bool)
            or not 0 <= moment <= MAX_WINDOW_START
        ):
            return None
        return SingleReport(collection, value, client, moment, PendingReceipt(1))

    def joined(self, singles: Iterable[SingleReport]) -> list[Submission]:
        """Randomize single values; those of one collection, with a client or without, are one submission."""
        alike: dict[tuple[str, bool], list[SingleReport]] = {}
        for each in singles:
            alike.setdefault((each.collection, each.client is None), []).append(each)
        return [self._joined(collection, same) for (collection, _), same in alike.items()]

    def submissions(
        self,
        collection: str,
        values: object,
        clients: Clients,
        at: Times = None,
        progress: tuple[str, InputProgress] | None = None,
        seen: SeenReports | None = None,
    ) -> Iterator[Submission]:
        """Check all values at once, then yield them randomized, in parts.

        Parameters
        ----------
        collection, values, clients, at : as for `Producer.report`.
        progress : stored with the reports, in one transaction: then there is one part.
        seen : as in `Submission`.

        Raises
        ------
        TypeError or ValueError like `Producer.report`, before anything is randomized.
        """
        if collection not in self.allowances:
            raise self.unknown_collection()
        if clients is values and isinstance(values, list | np.ndarray):
            raise ValueError(
                "clients must be other than the values, got one list for both: reports show a cohort and "
                "limits of each client without noise, so each value could be seen"
            )
        batch = self._responders[collection].prepare(values, clients)
        if batch.clients is None:
            self.allowances[collection].check_own_clients()
        question = self.allowances[collection].collection
        moment = self._clock.unix() if at is None else at
        windows = window_starts(moment, batch.count, question.window_seconds)
        slices = [slice(0, batch.count)] if progress else parts(question.mechanism, batch.count)
        return (self._randomized(collection, batch, windows, part, progress, seen) for part in slices)

    def _joined(self, collection: str, same: Sequence[SingleReport]) -> Submission:
        clients = [each.client for each in same if each.client is not None]
        batch = self._responders[collection].prepare([each.value for each in same], clients or None)
        seconds = self.allowances[collection].collection.window_seconds
        windows = window_starts([each.time for each in same], batch.count, seconds)
        whole = self._randomized(collection, batch, windows, slice(0, batch.count))
        receipt = SharedReceipt([each.pending_receipt for each in same])
        return replace(whole, pending_receipt=receipt, calls=np.arange(batch.count))

    def _randomized(
        self,
        collection: str,
        batch: Batch,
        windows: NDArray[np.int64],
        part: slice,
        progress: tuple[str, InputProgress] | None = None,
        seen: SeenReports | None = None,
    ) -> Submission:
        if batch.defer is None or self.allowances[collection].changes is None:
            (cohorts, rows), deferred = batch.respond(part), None
        else:
            (cohorts, rows), deferred = batch.defer(part)
        clients = None if batch.clients is None else self._client_keys.of(batch.clients[part])
        return Submission(
            collection,
            windows[part],
            cohorts,
            rows,
            clients,
            PendingReceipt(len(rows)),
            progress,
            deferred=deferred,
            seen=seen,
        )
