"""A collection in words: the figures are those of its mechanism, the limits those that are enforced."""

import pytest

from deniable.config.describe import describe
from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor

RAPPOR = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
DAY = 86_400


def lines_of(collection: Collection, budget: Budget | None = None, reports_per_window: int = 1) -> list[str]:
    return describe(Allowance(collection, budget, reports_per_window)).splitlines()


def test_krr_states_cost_of_first_and_further_reports() -> None:
    collection = Collection("carrier", KRR.from_epsilon(4, 2.0), values=("AA", "B6", "9E"), other=True)
    assert lines_of(collection) == [
        "carrier: k-RR over 4 buckets, the last one for all other values, windows of 60 s + 30 s grace",
        "  one report: epsilon 2",
        "  every further report of one client costs as much again, whatever its values do",
        "  a client may send 1 report per window, without a limit over time: no budget is enforced",
        "  a report cannot change anyone's odds by more than a factor 7.390; "
        f"fingerprint {collection.fingerprint:016x}",
    ]


def test_memoized_rappor_states_cost_of_all_reports() -> None:
    lines = lines_of(Collection("place", RAPPOR, candidates=("x", "y"), memoize=True))
    assert lines[0].startswith("place: RAPPOR, 128 bits, 2 hashes, 8 cohorts, 2 candidates, windows of 60 s")
    assert lines[2] == (
        f"  all reports of one client: epsilon {rounded_up(RAPPOR.epsilon_inf)} while its value stays the "
        "same; whatever its values do, nothing bounds them"
    )


def test_local_hashing_states_functions_and_buckets() -> None:
    lines = lines_of(Collection("search", LocalHash.from_epsilon(1.0), candidates=("x", "y")))
    assert lines[0].startswith("search: local hashing, 21840 functions into 3 buckets, 2 candidates, windows")
    assert lines[1:3] == [
        "  one report: epsilon 1",
        "  every further report of one client costs as much again, whatever its values do",
    ]


def test_longitudinal_hashing_states_the_cost_of_changes() -> None:
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0)
    lines = lines_of(Collection("search", mechanism, candidates=("x", "y"), memoize=True))
    assert lines[0].startswith("search: longitudinal local hashing, 234 functions into 3 buckets, 2 candi")
    assert lines[1:3] == [
        "  one report: epsilon 1",
        "  all reports of one client: epsilon 2 while its value stays the same; whatever its values do: 6, "
        "if it is known when buckets change",
    ]
    search = Collection("search", mechanism, candidates=("x",), memoize=True)
    limit, condition = lines_of(search, Budget(6.1, 1e-6, DAY, values="any"))[3:-1]
    assert limit.endswith("any number per period of 86400 s (budget: epsilon 6.1, delta 1e-06, values any)")
    held = "  so many stay within the budget whatever a client's values do"
    assert condition == f"{held}, if it is known when buckets change"
    unconditional = lines_of(search, Budget(6.1, 1e-6, DAY, 0, "any"))
    assert "any number per period" in unconditional[3]
    assert unconditional[4] == held
    browsers = "  browsers do not limit changes: they may send fewer reports per period, and for ever all "
    assert unconditional[5] == f"{browsers}buckets may show, epsilon 6, if it is known when buckets change"
    assert not any("if it is known" in line for line in (*unconditional[:5], *unconditional[6:]))


@pytest.mark.parametrize(
    ("changes", "costs"),
    [
        (0, "epsilon 2, whatever its values do"),
        (1, "epsilon 2 while its value stays the same; whatever its values do: 4, if"),
        (7, "epsilon 2 while its value stays the same; whatever its values do: 6, if"),
    ],
)
def test_limited_changes_bound_what_all_buckets_cost(changes: int, costs: str) -> None:
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0)
    search = Collection("search", mechanism, candidates=("x",), memoize=True)
    lines = lines_of(search, Budget(6.1, 1e-6, DAY, changes, "any"))
    assert costs in lines[2]
    shown = f"showing at most {changes} change{'' if changes == 1 else 's'} of bucket)"
    assert lines[3].endswith(shown)


def test_rappor_without_memory_adds_up() -> None:
    lines = lines_of(Collection("place", RAPPOR, candidates=("x",)))
    assert lines[1] == "  one report: epsilon 1.832"
    assert lines[2] == "  every further report of one client costs as much again, whatever its values do"


@pytest.mark.parametrize(
    ("collection", "budget", "reports_per_window", "message"),
    [
        (
            Collection("a", KRR.from_epsilon(4, 1.0)),
            Budget(10.0, 1e-6, DAY),
            2,
            "2 reports per window, 10 reports per period of 86400 s (budget: epsilon 10, delta 1e-06)",
        ),
        (
            Collection("a", KRR.from_epsilon(4, 0.75)),
            Budget(1.0, 1e-6, DAY),
            1,
            "1 report per window, 1 report per period of 86400 s (budget: epsilon 1, delta 1e-06)",
        ),
        (
            Collection("a", RAPPOR, memoize=True),
            Budget(8.0, 1e-6, DAY, values="unchanged"),
            1,
            "1 report per window, any number per period of 86400 s (budget: epsilon 8, delta 1e-06, "
            "values unchanged)",
        ),
    ],
)
def test_the_limits_of_a_client_are_reported(
    collection: Collection, budget: Budget, reports_per_window: int, message: str
) -> None:
    lines = lines_of(collection, budget, reports_per_window)[3:-1]
    assert lines[0] == f"  a client may send {message}"
    held = "  so many stay within the budget while a client's value stays the same; whatever its values do,"
    assert lines[1:] == ([f"{held} nothing bounds them"] if collection.memoize else [])


def test_a_budget_below_one_report_is_warned_of() -> None:
    assert lines_of(Collection("a", RAPPOR), Budget(1.0, 1e-6, DAY))[3:-1] == [
        "  a client may send 1 report per window, 0 reports per period of 86400 s "
        "(budget: epsilon 1, delta 1e-06)",
        "  warning: one report costs more than the budget, so every report of a client is refused",
    ]


@pytest.mark.parametrize(
    ("mechanism", "other", "message"),
    [
        (HotRappor.from_probabilities(3, 1, 0.5, 0.25, 0.75), False, "RAPPOR over 3 buckets, 1 in an answer"),
        (
            HotRappor.from_probabilities(4, 2, 0.5, 0.25, 0.75),
            True,
            "RAPPOR over 4 buckets, 2 in an answer, the last one for all other values",
        ),
        (LongitudinalKRR.from_epsilons(3, 2.0, 1.0), False, "longitudinal k-RR over 3 buckets"),
    ],
)
def test_other_mechanisms_state_cost_of_all_reports(
    mechanism: HotRappor | LongitudinalKRR, other: bool, message: str
) -> None:
    collection = Collection("place", mechanism, values=("a", "b", "c"), other=other, memoize=True)
    lines = lines_of(collection)
    assert lines[0].startswith(f"place: {message}, windows of 60 s")
    assert f"epsilon {rounded_up(collection.epsilon_inf)} while its value stays the same;" in lines[2]


@pytest.mark.parametrize(
    ("figure", "message"),
    [(1.83133237, "1.832"), (6.2422, "6.243"), (3.0, "3"), (1 + 1e-12, "1.001"), (float("inf"), "Infinity")],
)
def test_a_figure_is_never_stated_below_the_truth(figure: float, message: str) -> None:
    assert rounded_up(figure) == message


@pytest.mark.parametrize(
    ("candidates", "warnings"),
    [
        (("caf\u00e9", "cafe"), []),
        (
            ("tea", "caf\u00e9", "cafe\u0301"),
            [
                "  warning: 'caf\\xe9' and 'cafe\\u0301' differ only in their Unicode form: "
                "tables show them alike"
            ],
        ),
        (
            ("tea", "(other)"),
            ["  warning: tables also call the share of all others (other), like one of its values"],
        ),
    ],
)
def test_candidates_that_tables_show_alike_are_warned_of(
    candidates: tuple[str, ...], warnings: list[str]
) -> None:
    lines = lines_of(Collection("place", RAPPOR, candidates=candidates))
    assert [line for line in lines if "warning" in line] == warnings


def test_values_of_pairs_that_differ_in_form_are_warned_of_once() -> None:
    fields = (Field("a", ("\u00e9", "e\u0301"), True), Field("b", ("x", "y"), True))
    mechanism = PairKRR.from_epsilons(3, 3, 1.0, 1.0)
    collection = Collection("pair", mechanism, values=pair_labels(*fields), fields=fields)
    assert sum("Unicode form" in line for line in lines_of(collection)) == 1


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        (("1", "true", "x"), "'1' and 'true'"),
        (("x", "2", "2.0"), "'2' and '2.0'"),
        (("1", "false"), None),
        (("0", "1"), None),
        (("x", "y"), None),
    ],
)
def test_listed_values_that_other_notations_do_not_tell_apart_are_warned_of(
    values: tuple[str, ...], warned: str | None
) -> None:
    """Every way in reads by one rule: another notation of the number that both are means neither."""
    lines = lines_of(Collection("a", KRR.from_epsilon(len(values), 1.0), values=values))
    found = [line for line in lines if "notation" in line]
    assert [line.startswith(f"  warning: {warned} ") for line in found] == [True] * (warned is not None)


@pytest.mark.parametrize(("cohorts", "warns"), [(1, True), (5, True), (6, False), (8, False)])
def test_too_few_cohorts_are_warned_of(cohorts: int, warns: bool) -> None:
    mechanism = Rappor.from_probabilities(128, 2, cohorts, 0.25, 0.35, 0.65)
    lines = lines_of(Collection("place", mechanism, candidates=("tea", "milk")))
    assert [line.startswith("  warning: ") for line in lines if "significant" in line] == [True] * warns
