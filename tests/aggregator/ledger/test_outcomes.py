"""Headers explain rejections, and never echo what a sender wrote."""

import pytest

from deniable.aggregator.ledger.acceptance import Rejection
from deniable.aggregator.ledger.outcomes import MOST_HEADERS, Headers, PackOutcomes

NAMES = ["carrier", "plan"]


@pytest.mark.parametrize(
    ("reason", "headers", "named"),
    [
        ("unknown_collection", [("collection", b"plan")], {7: "plan"}),
        ("unknown_collection", [("other", b"x"), ("collection", b"plan")], {7: "plan"}),
        ("unknown_collection", [("collection", b"not ours")], {}),
        ("unknown_collection", [("collection", None)], {}),
        ("unknown_collection", [("name", b"plan")], {}),
        ("unknown_collection", [("x", b"")] * MOST_HEADERS + [("collection", b"plan")], {}),
        ("unknown_collection", [], {}),
        ("malformed", [("collection", b"plan")], {}),
    ],
)
def test_only_our_names_of_unknown_collections_are_kept(
    reason: str, headers: Headers, named: dict[int, str]
) -> None:
    outcomes = PackOutcomes()
    outcomes.name_rejection(7, Rejection(reason), headers, NAMES)
    assert outcomes.same_names == named
