"""`/api/compare`: which shares differ between two periods.

The comparison itself is given from outside: it belongs to those who analyse.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from aiohttp import web

from deniable.aggregator.history.periods import Period, period_of
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.web.estimates_api import unfit
from deniable.aggregator.web.past_windows import PastQuestion, PastWindows
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.significance import ALLOWED_RATES, FALSE_DISCOVERY_RATE

PARAMETERS = ("collection", "between", "and", "rate")
MOST_VALUES = 2000  # of an answer, as of an estimate's record


class Comparer(NamedTuple):
    """How two periods of a collection are compared.

    Parameters
    ----------
    check : raises ValueError if the periods cannot be compared, before anything is read.
    compare : returns a record of at most so many values; takes the collection, both periods, their joined
        windows, the false-discovery rate in (0, 1), and the number of values. Raises DeniableError with the
        reason if there are too few reports.
    """

    check: Callable[[Collection, Period, Period], None]
    compare: Callable[[Collection, Sequence[Period], Sequence[Joined], float, int], msgspec.Struct]


class Comparisons:
    """Answers to `/api/compare?collection=&between=START/END&and=START/END&rate=`.

    Parameters
    ----------
    past : where the windows come from.
    comparer : compares them.
    """

    def __init__(self, past: PastWindows, comparer: Comparer) -> None:
        self.past = past
        self.comparer = comparer

    def routes(self) -> list[web.AbstractRouteDef]:
        """Routes for the web server."""
        return [self.past.route("/api/compare", self._question)]

    def _question(self, request: web.Request) -> PastQuestion:
        query = request.query
        if wrong := unfit(request, *PARAMETERS):
            raise ValueError(wrong)
        if missing := [name for name in PARAMETERS[:3] if name not in query]:
            raise ValueError(f"give {', '.join(PARAMETERS[:3])}; missing: {', '.join(missing)}")
        collection = self.past.collection(query["collection"])
        periods = [_period(name, query[name]) for name in ("between", "and")]
        rate, compare = _rate(query.get("rate")), self.comparer.compare
        self.comparer.check(collection, *periods)

        def compute(joined: Sequence[Joined]) -> bytes:
            return msgspec.json.encode(compare(collection, periods, joined, rate, MOST_VALUES))

        return PastQuestion(collection, periods, compute, "deniable compare")


def _period(name: str, text: str) -> Period:
    start, slash, end = text.partition("/")
    if not slash:
        raise ValueError(f"{name} must be START/END, each in ISO 8601 or unix seconds, got {text[:60]!r}")
    return period_of(start, end)


def _rate(text: str | None) -> float:
    try:
        rate = FALSE_DISCOVERY_RATE if text is None else float(text)
    except ValueError:
        rate = -1.0
    least, most = ALLOWED_RATES
    if not least <= rate <= most:
        raise ValueError(f"rate must be a number in [{least:g}, {most}], got {str(text)[:60]!r}")
    return rate
