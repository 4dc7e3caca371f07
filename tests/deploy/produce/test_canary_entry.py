"""Canaries in the collection file: accepted ones, and messages about others."""

from functools import partial
from pathlib import Path

import pytest

from deniable.config.file import CollectionFileError
from deniable.estimators.canary import least_reports
from deniable.estimators.mechanisms.krr import KRR
from tests.support.deploy.collection_texts import HEAD, RAPPOR_ENTRY, read
from tests.support.messages import PinMessages

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


def test_messages(file: Path, pin_messages: PinMessages) -> None:
    entries = {
        "all other values": CANARY_ENTRY.replace("other: false", "other: true"),
        "too many values": CANARY_ENTRY.replace("size: 4", "size: 17"),
        "too few reports": CANARY_ENTRY.replace("minimum_reports: 10000", "minimum_reports: 100"),
        "another mechanism": RAPPOR_ENTRY.replace("budget", "canary: true, budget"),
    }
    pin_messages({what: partial(read, file, HEAD + entry) for what, entry in entries.items()})


def test_least_reports_of_the_message_are_accepted(file: Path) -> None:
    least = least_reports(KRR.from_epsilon(4, 2.0))
    entry = CANARY_ENTRY.replace("minimum_reports: 10000", f"minimum_reports: {least}")
    assert read(file, HEAD + entry).collection("canary").minimum_reports == least
    with pytest.raises(CollectionFileError, match=f"{least}, "):
        read(file, HEAD + entry.replace(f"minimum_reports: {least}", f"minimum_reports: {least - 1}"))
