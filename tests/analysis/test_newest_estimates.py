"""Records of estimates become rows: the newest revision of each window, and every figure as it was."""

import msgspec
import numpy as np
import pytest

from deniable.aggregator.history.periods import Period
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

from deniable.analysis.sources.newest import NewestEstimates
from deniable.analysis.sources.topic import EstimateFilter
from deniable.analysis.tables.estimate_table import estimate_schema

FIRST = changed(estimate_of(), revision=3, final=True)
FIGURES = ("frequency", "std_error", "low", "high", "count", "significant")
OPTIONAL = ("low_all", "high_all", "unbiased")


def read(*records: EstimateRecord | bytes, other: bool = False) -> NewestEstimates:
    newest = NewestEstimates()
    for each in records:
        newest.add(each if isinstance(each, bytes) else encode_estimate(each))
    return newest


def check(newest: NewestEstimates, *expected: EstimateRecord) -> None:
    """The rows are the values of these records, in this order."""
    table = newest.table(other=False)
    assert table.schema == estimate_schema()
    assert table["value"].to_pylist() == [value for each in expected for value in each.values]
    for name in FIGURES:
        assert table[name].to_pylist() == [figure for each in expected for figure in getattr(each, name)]
    for name in ("reports", "revision", "final", "mechanism", "epsilon", "fingerprint", "collection"):
        assert table[name].to_pylist() == [getattr(each, name) for each in expected for _ in each.values]
    starts = [int(each.timestamp()) for each in table["window_start"].to_pylist()]
    assert starts == [each.window_start for each in expected for _ in each.values]


@pytest.mark.slow
def test_figures_are_exact() -> None:
    rappor = changed(estimate_of(PLACE), final=True)
    check(read(FIRST), FIRST)
    check(read(rappor), rappor)
    unreliable = read(rappor).table(other=False)["unreliable"].to_pylist()
    assert unreliable == rappor.unreliable
    assert read(FIRST).table(other=False)["unreliable"].null_count == len(FIRST.values)


def test_columns_that_older_versions_lack_are_those_of_the_record() -> None:
    """Null where a record of an older version has none, and for the remainder."""
    older = changed(FIRST, window_start=T0 + 10, window_end=T0 + 20, low_all=[], high_all=[], unbiased=[])
    table = read(FIRST, older).table(other=True)
    for name in OPTIONAL:
        own = getattr(FIRST, name)
        assert len(own) == 3
        assert table[name].to_pylist() == [*own, None, None, None, None, None]


def test_doubles_survive_whatever_their_text() -> None:
    """Numbers with 17 digits, tiny ones and whole ones; a standard error may be null."""
    figures = [0.1 + 0.2, 5e-324, 1.0]
    record = changed(FIRST, frequency=figures, std_error=[None, 1e-17, 0.0], count=[1e22, 0.0, 123456789.123])
    check(read(record), record)


def test_texts_survive_whatever_they_hold() -> None:
    record = changed(FIRST, values=['a,b"]', "null", "line\nend \u2028 \\"])
    check(read(record), record)


def test_newest_revision_wins_in_any_order() -> None:
    older = changed(FIRST, revision=2, reports=7)
    provisional = changed(FIRST, final=False, reports=8)
    later = changed(FIRST, window_start=T0 + 10, window_end=T0 + 20)
    for records in ([FIRST, older, provisional, later], [later, provisional, older, FIRST]):
        check(read(*records), FIRST, later)


def test_records_may_have_different_numbers_of_values() -> None:
    names = ("values", *FIGURES, "low_all", "high_all", "unbiased")
    columns = {name: getattr(FIRST, name)[:2] for name in names}
    short = changed(FIRST, window_start=T0 + 10, window_end=T0 + 20, **columns)
    last = changed(FIRST, window_start=T0 + 20, window_end=T0 + 30, reports=9)
    for records in (
        [FIRST, short, last],
        [last, short, FIRST],
        [short, last, changed(short, revision=1), FIRST],
    ):
        check(read(*records), FIRST, short, last)


def test_other_parameters_are_another_collection() -> None:
    other = changed(FIRST, fingerprint="0" * 16, revision=1)
    check(read(FIRST, other), other, FIRST)


def test_estimate_in_parts_counts_once_it_is_whole() -> None:
    parts = [
        changed(FIRST, revision=9, part=part, parts=2, values=[f"{part}-{i}" for i in range(3)])
        for part in (1, 2)
    ]
    check(read(FIRST, parts[1]), FIRST)
    check(read(parts[1], FIRST, parts[0]), *parts)
    waiting = read(FIRST, parts[0]).unfinished()
    waiting.add(encode_estimate(parts[1]))
    check(waiting, *parts)


def test_first_part_is_all_that_a_worker_has() -> None:
    newest = NewestEstimates(needs_all_parts=False)
    part = changed(FIRST, parts=2)
    newest.add(encode_estimate(part))
    check(newest, part)


@pytest.mark.parametrize(
    "record",
    [
        b"{}",
        b"\xff",
        b"[" * 100_000,
        encode_estimate(FIRST).replace(b'"version":1', b'"version":2'),
        encode_estimate(FIRST).replace(b'"low":[', b'"low":[0.5,'),
        encode_estimate(FIRST).replace(b'"significant":[', b'"significant":[null,'),
        encode_estimate(FIRST).replace(f'"window_start":{T0}'.encode(), b'"window_start":-1'),
        encode_estimate(changed(FIRST, reports=2**63)),
        encode_estimate(changed(FIRST, revision=2**63)),
    ],
    ids=["fields", "bytes", "nesting", "version", "lengths", "null", "start", "reports", "revision"],
)
def test_what_is_no_estimate_is_counted_and_skipped(record: bytes) -> None:
    newest = read(record, FIRST)
    check(newest, FIRST)
    assert newest.foreign == 1


def test_record_written_by_others_is_read() -> None:
    """With spaces, and without the fields that came later."""
    fields = msgspec.to_builtins(FIRST)
    for name in (
        "part",
        "parts",
        "misfit_error",
        "unreliable",
        "unexplained_bits",
        "pair",
        "mean",
        "quantiles",
        *OPTIONAL,
    ):
        del fields[name]
    check(read(msgspec.json.format(msgspec.json.encode(fields), indent=1)), FIRST)


def test_remainder_is_the_last_row_of_its_window() -> None:
    without_rest = changed(FIRST, window_start=T0 - 10, window_end=T0, other=None)
    table = read(FIRST, without_rest).table(other=True)
    assert table["value"].to_pylist() == [*without_rest.values, *FIRST.values, "(other)"]
    assert table["is_other"].to_pylist() == [False] * 6 + [True]
    assert FIRST.other is not None
    assert table["frequency"].to_pylist()[-1] == FIRST.other.frequency
    assert table["significant"].to_pylist()[-1] is None


def test_only_what_is_wanted_is_converted() -> None:
    wanted = EstimateFilter("fruit", FIRST.fingerprint, Period(T0, T0 + 10))
    records = {
        "wanted": FIRST,
        "provisional": changed(FIRST, final=False),
        "too early": changed(FIRST, window_start=T0 - 10, window_end=T0),
        "longer": changed(FIRST, window_end=T0 + 11),
        "parameters": changed(FIRST, fingerprint="0" * 16),
    }
    kept = {
        name for name, each in records.items() if wanted.wanted(each.key, encode_estimate(each)) is not None
    }
    assert kept == {"wanted"}
    assert wanted.wanted(b"place/1", encode_estimate(FIRST)) is None
    assert wanted.wanted(FIRST.key, None) is None
    assert wanted.wanted(FIRST.key, b"{}") is None
    assert wanted.wanted(FIRST.key, encode_estimate(FIRST).replace(b'"fruit"', b'"fru\xfft"')) is None
    assert (wanted.others, wanted.foreign) == ({"0" * 16: {T0}}, 2)
    spaced = msgspec.json.format(encode_estimate(FIRST), indent=1)
    assert wanted.wanted(FIRST.key, spaced) == encode_estimate(FIRST)


def test_many_batches_keep_every_row() -> None:
    """More than a batch holds, in reverse order, of which half are of older revisions."""
    records = [
        changed(FIRST, window_start=T0 + 10 * i, window_end=T0 + 10 * i + 10, revision=revision, reports=i)
        for i in reversed(range(50))
        for revision in (1, 2)
    ]
    newest = NewestEstimates()
    for number, each in enumerate(records):
        newest.add(encode_estimate(each))
        if number % 7 == 0:
            newest.convert(newest.taken())
    expected = [each for each in reversed(records) if each.revision == 2]
    check(newest, *expected)
    assert FRUIT.fingerprint == int(FIRST.fingerprint, 16)
    assert np.isfinite(newest.table(other=False)["frequency"].to_numpy()).all()


def test_moment_of_a_discovery_is_a_time_or_null() -> None:
    found = changed(FIRST, discovered_at=[None, T0 - 10, None], window_start=T0 + 10, window_end=T0 + 20)
    table = read(FIRST, found).table(other=True)
    moments = [each and int(each.timestamp()) for each in table["discovered_at"].to_pylist()]
    rows = len(moments) - 6
    assert moments == [None] * (3 + rows // 2) + [None, T0 - 10, None] + [None] * (rows // 2)
    beyond = encode_estimate(found).replace(b'"discovered_at":[null,', b'"discovered_at":[1%s,' % (b"0" * 30))
    assert read(beyond).table(other=False).num_rows == 0
