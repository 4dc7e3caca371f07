"""What a file changes in ledgers, and the revision with which they adopt it."""

from dataclasses import replace

import msgspec
import pytest

from deniable.aggregator.ledger.terms import Terms, terms_of
from deniable.aggregator.ledger.terms_update import check_raised, check_revision
from deniable.aggregator.maintenance.adoption import Adoption, LedgerTerms, adoption_of
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR


def collection(name: str, epsilon: float = 1.0) -> Collection:
    return Collection(
        name=name,
        mechanism=KRR.from_epsilon(4, epsilon),
        window_seconds=60,
        grace_seconds=30,
        retention_seconds=3600,
    )


PLAN, OTHER_PLAN, PLACE = collection("plan"), collection("plan", 2.0), collection("place")


def ledger(revision: int, *collections: Collection, retired: tuple[Collection, ...] = ()) -> LedgerTerms:
    terms: dict[int, Terms] = {each.fingerprint: terms_of(each) for each in collections}
    for each in retired:
        terms[each.fingerprint] = msgspec.structs.replace(terms_of(each), until=7)
    return LedgerTerms(revision, terms)


def adopted(ledgers: list[LedgerTerms], *collections: Collection, revision: int = 1) -> Adoption:
    return adoption_of(ledgers, {each.fingerprint: each for each in collections}, revision)


NOTHING = Adoption(1, [], [], [], [], [])


@pytest.mark.parametrize(
    ("ledgers", "file", "expected"),
    [
        ([ledger(0), ledger(0)], (PLAN,), NOTHING),
        ([ledger(1, PLAN)], (PLAN,), NOTHING),
        ([ledger(4, PLAN)], (PLAN,), NOTHING._replace(revision=4)),
        ([ledger(1, PLAN)], (OTHER_PLAN,), NOTHING._replace(revision=2, redefined=["plan"])),
        ([ledger(1, PLAN)], (PLACE,), NOTHING._replace(revision=2, removed=["plan"], added=["place"])),
        ([ledger(1, PLAN)], (PLAN, PLACE), NOTHING._replace(revision=2, added=["place"])),
        (
            [ledger(1, PLAN)],
            (replace(PLAN, grace_seconds=31),),
            NOTHING._replace(revision=2, changed=["plan"]),
        ),
        ([ledger(2, OTHER_PLAN, retired=(PLAN,))], (OTHER_PLAN,), NOTHING._replace(revision=2)),
        (
            [ledger(2, OTHER_PLAN, retired=(PLAN,))],
            (PLAN,),
            NOTHING._replace(revision=3, redefined=["plan"], retired=["plan"]),
        ),
    ],
)
def test_change_is_named_and_raises_the_revision(
    ledgers: list[LedgerTerms], file: tuple[Collection, ...], expected: Adoption
) -> None:
    assert adopted(ledgers, *file) == expected


def test_an_interrupted_change_is_continued() -> None:
    """A worker that ended between two ledgers has opened one with revision 2, and the other not."""
    found = adopted([ledger(2, PLAN, PLACE), ledger(1, PLAN)], PLAN, PLACE)
    assert (found.revision, found.added) == (3, ["place"])
    for held in (2, 1):
        check_revision(held, found.revision)
        check_raised(held, found.revision, {PLACE.fingerprint: terms_of(PLACE)})


def test_a_file_with_a_higher_revision_keeps_it() -> None:
    assert adopted([ledger(3, PLAN)], PLAN, revision=9).revision == 9
