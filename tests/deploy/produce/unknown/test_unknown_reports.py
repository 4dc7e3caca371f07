"""An unattended run ends by its stored reports alone, after 1,000, 2,000, 4,000 … of them."""

import numpy as np
import pytest

from deniable.deploy.produce.unknown.unknown_reports import MostlyUnlistedError, UnknownReports
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from tests.support.messages import PinMessages

LISTED = Collection("plan", KRR.from_epsilon(4, 2.0), values=("a", "b", "c"), other=True)
WIDE = Collection("age", KRR.from_epsilon(300, 6.0), other=True)


def reports_of(collection: Collection = LISTED, *, is_deciding: bool = True) -> UnknownReports:
    return UnknownReports(collection, ["--field plan"], has_clients=True, is_deciding=is_deciding)


def rows(bucket: int, count: int, dtype: str = "u1") -> np.ndarray:
    return np.full((count, 1), bucket, dtype).view(np.uint8)


def test_nothing_is_decided_below_a_thousand() -> None:
    found = reports_of()
    found.note(rows(3, 999))
    found.decide()
    found.decide(is_end=True)
    found.note(rows(3, 1))
    with pytest.raises(MostlyUnlistedError):
        found.decide()


def test_decisions_are_few_and_one_more_at_the_end() -> None:
    found = reports_of()
    found.note(rows(0, 1000))
    found.decide()
    found.note(rows(3, 999))
    found.decide()  # not due
    found.note(rows(3, 2))
    with pytest.raises(MostlyUnlistedError):
        found.decide()
    found = reports_of()
    found.note(rows(0, 1000))
    found.decide()
    found.note(rows(3, 999))
    with pytest.raises(MostlyUnlistedError):
        found.decide(is_end=True)


def test_buckets_of_two_bytes_are_counted() -> None:
    found = reports_of(WIDE)
    found.note(rows(299, 1000, "<u2"))
    with pytest.raises(MostlyUnlistedError):
        found.decide()


def test_nothing_is_decided_unless_asked() -> None:
    found = reports_of(is_deciding=False)
    found.note(rows(3, 5000))
    found.decide(is_end=True)
    assert not found.is_deciding
    assert reports_of().is_deciding


ANY = Collection("word", LocalHash.from_epsilon(2.0))
SILENT = Collection("plan", KRR.from_epsilon(3, 2.0), values=("a", "b", "c"))


@pytest.mark.parametrize(
    ("collection", "is_deciding", "is_strict", "is_said"),
    [
        (SILENT, True, False, True),
        (SILENT, True, True, False),
        (SILENT, False, False, False),
        (ANY, True, True, True),  # --strict knows no text that is wrong
        (LISTED, True, False, False),
    ],
)
def test_an_unattended_run_says_that_its_reports_cannot_show_a_wrong_column(
    collection: Collection, is_deciding: bool, is_strict: bool, is_said: bool
) -> None:
    """Whatever the input holds: nothing was read yet."""
    assert bool(reports_of(collection, is_deciding=is_deciding).notice(is_strict=is_strict)) == is_said


def test_messages(pin_messages: PinMessages) -> None:
    def stopped(*options: str) -> None:
        found = UnknownReports(LISTED, options, has_clients=True, is_deciding=True)
        found.note(rows(3, 1000))
        found.decide()

    pin_messages(
        {
            "one field": lambda: stopped("--field plan"),
            "two fields": lambda: stopped("--field plan", "--second-field country"),
            "reports that cannot show it": lambda: reports_of(SILENT).notice(is_strict=False),
            "any text": lambda: reports_of(ANY).notice(is_strict=False),
        }
    )
