"""Stop an unattended run whose reports show that most values are not listed: the wrong column, for example.

Privacy: the decision is a function of numbers of randomized reports that were charged and stored, which leave
anyway. What is computed from these alone costs nothing more (post-processing), whatever it makes the run do
or say. Refused reports are not counted, and nothing is said unless the run stops, but `notice`: a function of
collection and options alone.

A run stops as soon as that is decided: its lines are neither charged nor sent, and with --follow there is no
end at which to say it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deniable.deploy.produce.unknown.unknown_values import is_listed
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.unlisted_majority import other_signs
from deniable.estimators.errors import DeniableError
from deniable.protocol.wire import bucket_dtype

MIN_REPORTS = 1000
#: Most runs that stop although at most half of their values are unlisted, as a share of all.
FALSE_ALARMS = 1e-6


class MostlyUnlistedError(DeniableError):
    """Most of the values of an unattended run are not listed."""

    exit_status = 4


class UnknownReports:
    """Counts the stored reports of a run, and decides at 1,000, 2,000, 4,000 … of them, and in the end.

    Decision i has half the false alarms of the one before, so all of them together have FALSE_ALARMS.

    Parameters
    ----------
    collection : of the reports.
    options : that name the values' fields, as given.
    has_clients : whether lines may share a client.
    is_deciding : False if the run never stops.
    consequence : of a stop, a sentence without its full stop.
    """

    def __init__(
        self,
        collection: Collection,
        options: Sequence[str],
        *,
        has_clients: bool,
        is_deciding: bool,
        consequence: str = "What was stored is sent",
    ) -> None:
        self._collection = collection
        self._consequence = consequence
        self._options = options
        self._is_asked = is_deciding
        signs = other_signs(collection, has_clients=has_clients) if is_deciding else []
        self._shown = dict.fromkeys(signs, 0)
        self._reports = 0
        self._due = MIN_REPORTS
        self._rate = FALSE_ALARMS

    @property
    def is_deciding(self) -> bool:
        """Whether the run may stop: reports of the collection show what is not listed."""
        return bool(self._shown)

    def notice(self, *, is_strict: bool) -> str:
        """Say that a run could stop, but for its collection; empty if it can stop, or is not to.

        Parameters
        ----------
        is_strict : whether the first values themselves stop the run, if most are not listed.
        """
        name, is_known = self._collection.name, is_listed(self._collection)
        if not self._is_asked or self._shown or (is_strict and is_known):
            return ""
        cannot = f"reports of {name} cannot show a wrong column"
        if not is_known:
            return f"{cannot}, since it takes any text: look at the first lines of the input yourself"
        verb = "are" if len(self._options) > 1 else "is"
        return (
            f"{cannot}, so this run ends for none; if it is not certain that {' and '.join(self._options)} "
            f"{verb} right, give --strict, or --show-unknown where nobody else reads stderr"
        )

    def note(self, rows: NDArray[np.uint8]) -> None:
        """Count stored reports in wire format, uint8 (n, bytes of a report)."""
        if not self._shown:
            return
        self._reports += len(rows)
        for sign in self._shown:
            reports = rows if sign.bit is not None else rows.view(bucket_dtype(self._collection.width))[:, 0]
            self._shown[sign] += sign.count(reports)

    def decide(self, *, is_end: bool = False) -> None:
        """Raise MostlyUnlistedError if most of the values are not listed and a decision is due."""
        if not self._shown or self._reports < (MIN_REPORTS if is_end else self._due):
            return
        while self._due <= self._reports:
            self._due *= 2
        self._rate /= 2
        rate = self._rate / len(self._shown)
        if any(sign.is_majority(shown, self._reports, rate) for sign, shown in self._shown.items()):
            are = "are" if len(self._options) > 1 else "is"
            raise MostlyUnlistedError(
                f"stopped: as the randomized reports show, most of the values are not listed for "
                f"{self._collection.name}; {are} {' and '.join(self._options)} right? If so, give "
                f"--hide-unknown. {self._consequence}"
            )
