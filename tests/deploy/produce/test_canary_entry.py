"""Canaries in the collection file: accepted ones, and messages about others."""

from pathlib import Path

import pytest

from estimators.canary import least_reports
from estimators.mechanisms.krr import KRR
from tests.support.deploy.collection_texts import HEAD, KRR_ENTRY, RAPPOR_ENTRY, read, refusal

CANARY_ENTRY = """\
  - {name: canary, mechanism: k-rr, size: 4, other: false, epsilon: 2.0, canary: true,
     window_seconds: 60, grace_seconds: 30, minimum_reports: 10000, budget: none}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


def test_a_canary_is_a_collection_of_another_meaning(file: Path) -> None:
    """So that reports of a producer whose file does not call it one are turned away."""
    (canary,) = read(file, HEAD + CANARY_ENTRY).collections
    (plain,) = read(file, HEAD + CANARY_ENTRY.replace("canary: true", "canary: false")).collections
    (without,) = read(file, HEAD + CANARY_ENTRY.replace(" canary: true,", "")).collections
    assert (canary.canary, plain.canary) == (True, False)
    assert plain == without
    assert canary.fingerprint != plain.fingerprint


def test_a_longitudinal_one_is_taken_too(file: Path) -> None:
    entry = CANARY_ENTRY.replace("k-rr,", "k-rr-longitudinal,")
    entry = entry.replace("epsilon: 2.0", "epsilon_inf: 4.0, epsilon_one: 2.0")
    (canary,) = read(file, HEAD + entry).collections
    assert canary.canary


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("other: false", "other: true", "a canary sends listed values alone; write other: false"),
        ("size: 4", "size: 17", "number of values of a canary must be in [2, 16], got 17"),
        (
            "minimum_reports: 10000",
            "minimum_reports: 100",
            f"minimum_reports of this canary must be in [{least_reports(KRR.from_epsilon(4, 2.0))}, "
            "1000000000000], got 100",
        ),
    ],
)
def test_impossible_canaries_are_refused(file: Path, before: str, after: str, message: str) -> None:
    entry = CANARY_ENTRY.replace(before, after)
    assert refusal(file, HEAD + entry) == f"collections[0] (canary): {message}"


def test_other_mechanisms_are_refused_in_words(file: Path) -> None:
    entry = RAPPOR_ENTRY.replace("budget", "canary: true, budget")
    assert refusal(file, HEAD + KRR_ENTRY + entry).startswith(
        "collections[1]: unknown field `canary`; a canary is of mechanism k-rr or k-rr-longitudinal. Known"
    )
