"""In which parameters a collection differs from what workers publish, in the words of the collection file.

Rule: the workers' texts come from Kafka, so they are shown quoted, without control characters, and cut.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.directed_rounding import rounded_up_short
from deniable.protocol.publication import ManyValues, Publication, PublishedParameters, publication_of

MOST_NAMED = 3
MOST_CHARACTERS = 40
PROBABILITIES = {"flip_threshold": ("f", 2**31), "p_threshold": ("p", 2**32), "q_threshold": ("q", 2**32)}
SIZES = ("k", "buckets")  # the number of values, with `other`

ListedValues = tuple[str, ...] | ManyValues


class _Difference(NamedTuple):
    """A parameter that differs: what is so here, and what at the others; either may be empty."""

    name: str
    here: str
    there: str

    def text(self, whose: str) -> str:
        """Put it in words; `whose` the other side is."""
        there = f"{self.there} the {whose}" if self.there else ""
        return f"{self.name}: {', '.join(each for each in (self.here, there) if each)}"


def differences(own: Collection, theirs: Publication, whose: str = "workers") -> list[str]:
    """Name each parameter that differs, with both values: `epsilon: 2 here, 1 at the workers`.

    Parameters
    ----------
    own : of this machine's collection file.
    theirs : of the workers, with the same name.
    whose : theirs are, for the messages.

    Returns
    -------
    Never empty if the fingerprints differ; empty if they are equal.
    """
    here = publication_of(own)
    if here.fingerprint == theirs.fingerprint:
        return []
    found = [*_of_mechanism(here, theirs), *_of_collection(here.parameters, theirs.parameters)]
    found = found or list(_of_thresholds(here, theirs))
    return [each.text(whose) for each in found] or ["another version of deniable computed them"]


def _of_mechanism(here: Publication, there: Publication) -> Iterator[_Difference]:
    mine, other = here.parameters.mechanism, there.parameters.mechanism
    if mine.get("kind") != other.get("kind"):
        yield _line("mechanism", mine.get("kind"), other.get("kind"))
    is_same = mine.get("kind") == other.get("kind")
    is_fresh = is_same and mine.get("kind") in ("k-rr", "k-rr-pair", "local-hash", "number", "one-hot-pair")
    name = "epsilon" if is_fresh else "epsilon_one"
    if _differ(here.epsilon, there.epsilon):
        yield _line(name, _epsilon(here.epsilon), _epsilon(there.epsilon))
    bounds = here.epsilon_inf, there.epsilon_inf
    if None not in bounds and _differ(*bounds):  # else memoize or mechanism differs
        yield _line("epsilon_inf", *map(_epsilon, bounds))
    for key in sorted(mine.keys() & other.keys()):
        if (
            mine[key] != other[key]
            and key not in ("kind", "half_width", *SIZES)
            and not key.endswith("threshold")
        ):
            yield _line(key, mine[key], other[key])


def _of_collection(here: PublishedParameters, there: PublishedParameters) -> Iterator[_Difference]:
    if here.values != there.values:
        yield _Difference("values", *_of_values(here.values, there.values))
    elif _size(here) != _size(there):
        yield _line("size", _size(here), _size(there))
    for name in ("other", "memoize", "window_seconds", "canary"):
        if getattr(here, name) != getattr(there, name):
            yield _line(name, getattr(here, name), getattr(there, name))


def _of_values(here: ListedValues, there: ListedValues) -> tuple[str, str]:
    if isinstance(here, ManyValues) or isinstance(there, ManyValues):
        mine, other = (each.count if isinstance(each, ManyValues) else len(each) for each in (here, there))
        return (f"{mine} here", f"{other} at") if mine != other else (f"{mine}, of which some differ", "")
    missing = [value for value in there if value not in set(here)]
    added = [value for value in here if value not in set(there)]
    lacks = f"{_named(missing)} missing here" if missing else ""
    unknown = f"{_named(added)} unknown to" if added else ""
    return (lacks, unknown) if lacks or unknown else ("in another order", "")


def _named(values: list[str]) -> str:
    if len(values) > MOST_NAMED:
        return f"{len(values)} are"
    return f"{', '.join(_quoted(value) for value in values)} {'is' if len(values) == 1 else 'are'}"


def _of_thresholds(here: Publication, there: Publication) -> Iterator[_Difference]:
    """Compare thresholds themselves: two RAPPORs may have the same epsilon with other f, p and q."""
    mine, other = here.parameters.mechanism, there.parameters.mechanism
    for key in sorted(mine.keys() & other.keys()):
        if mine[key] != other[key]:
            name, whole = PROBABILITIES.get(key, (key, 0))
            both = mine[key], other[key]
            yield _line(name, *(each / whole if whole and isinstance(each, int) else each for each in both))


def _size(parameters: PublishedParameters) -> object:
    """Return the number of values without `other`; None for mechanisms that take any text."""
    for key in SIZES:
        if isinstance(size := parameters.mechanism.get(key), int):
            return size - parameters.other
    return None


def _line(name: str, here: object, there: object) -> _Difference:
    return _Difference(_plain(name), f"{_shown(here)} here", f"{_shown(there)} at")


def _shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}"
    return _plain(str(value))


def _differ(here: float | None, there: float | None) -> bool:
    """Whether two epsilons differ by more than the rounding of thresholds."""
    one, other = (each if each is None else f"{each:.4g}" for each in (here, there))
    return one != other


def _epsilon(epsilon: float | None) -> str | None:
    return None if epsilon is None else rounded_up_short(epsilon)


def _quoted(value: str) -> str:
    return f'"{_plain(value)}"'


def _plain(text: str) -> str:
    """Escape control characters, and cut."""
    escaped = json.dumps(text)[1:-1] if not text.isprintable() else text
    return escaped if len(escaped) <= MOST_CHARACTERS else f"{escaped[: MOST_CHARACTERS - 1]}…"
