"""One line of `inspect`: what a record says, and of a damaged one nothing of what it holds."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.terms import terms_of
from deniable.aggregator.records.estimate import Other, encode_estimate
from deniable.aggregator.records.final_window import FinalWindow, encode_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.deploy.query.inspection.records import READERS, fields_of, line_of
from deniable.deploy.query.inspection.rows import Inspection
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.protocol import wire
from deniable.protocol.publication import encode_publication, publication_of
from deniable.protocol.uploads.frame import encode_frame
from deniable.protocol.uploads.upload import Upload, UploadGroup, encode_upload
from deniable.relay.control import Intake, encode_marker, encode_settings
from deniable.relay.service.outcomes import Accepted, OutcomeRecord, RejectedGroups
from tests.support.deploy.estimates import record
from tests.support.relay.logs import KEYS, settings_of

CARRIER = Collection("carrier", KRR.from_epsilon(4, 2.0), ("AA", "B6", "9E"), other=True)
PLACE = Collection("place", Rappor.from_probabilities(16, 2, 3, 0.25, 0.35, 0.65), candidates=("JFK",))
PAIR = Field("os", ("a", "b"), False), Field("page", ("x", "y", "z", "w"), False)
ROUTE = Collection("route", OneHotPair.from_epsilon(2, 4, 2.0), pair_labels(*PAIR), fields=PAIR)
KNOWN = {each.fingerprint: each for each in (CARRIER, PLACE)}
TIME_MS = 1_767_225_600_123
PLACED = {"partition": 3, "offset": 7, "time": "2026-01-01T00:00:00.123Z"}
NAMED = {"collection": "carrier", "fingerprint": f"{CARRIER.fingerprint:016x}"}
STRANGER = 0xDEADBEEF


@dataclass
class Stored:
    value: bytes | None
    key: bytes | None = None
    offset: int = 7
    timestamp: int = TIME_MS


def said(topic: str, stored: Stored, *, payload: bool = False) -> dict[str, object]:
    """The output after the record's place."""
    fields = fields_of(topic, Inspection(KNOWN, payload), 3, stored)
    assert {name: fields.pop(name) for name in PLACED} == PLACED
    return json.loads(json.dumps(fields))


def pack_of(collection: Collection, reports: list[int]) -> wire.Pack:
    is_krr = isinstance(collection.mechanism, KRR)
    dtype = "u1" if is_krr else f"<u{collection.width // 8}"
    return wire.Pack(
        mechanism=collection.mechanism.wire_number,
        cohort=0 if is_krr else 2,
        fingerprint=collection.fingerprint,
        window_start=1_767_225_600,
        reports=len(reports),
        width=collection.width,
        pack_id=bytes(range(16)),
        payload=np.array(reports, dtype).tobytes(),
    )


def test_a_pack_is_its_header() -> None:
    stored = Stored(wire.encode(pack_of(CARRIER, [0, 3, 3])))
    header = {
        "kind": "pack", **NAMED, "window_start": 1_767_225_600, "mechanism": "k-rr", "cohort": 0,
        "reports": 3, "width": 4, "pack_id": "000102030405060708090a0b0c0d0e0f",
    }  # fmt: skip
    assert said("reports", stored) == header
    assert said("reports", stored, payload=True) == header | {"payload": [0, 3, 3]}


def test_rappor_payload_is_printed_as_hex_rows() -> None:
    stored = Stored(wire.encode(pack_of(PLACE, [0x0180, 0xFF00])))
    assert "8001" not in json.dumps(said("reports", stored))
    shown = said("reports", stored, payload=True)
    assert (shown["mechanism"], shown["cohort"], shown["payload"]) == ("rappor", 2, ["8001", "00ff"])


def test_a_pack_of_bits_has_the_mechanism_of_its_collection() -> None:
    pair = pack_of(ROUTE, [0x03])
    forged = replace(pack_of(CARRIER, [0]), fingerprint=ROUTE.fingerprint)
    for pack, known, name in (
        (pair, {ROUTE.fingerprint: ROUTE}, "one-hot-pair"),
        (pair, {}, "rappor"),
        (forged, {ROUTE.fingerprint: ROUTE}, "k-rr"),
    ):
        shown = fields_of("reports", Inspection(known, payload=False), 3, Stored(wire.encode(pack)))
        assert shown["mechanism"] == name


def test_collection_that_the_file_lacks_has_no_name() -> None:
    key = row_keys.encode_key(row_keys.PublishedKey(STRANGER, 60))
    shown = said("state", Stored(row_values.encode_published(row_values.Published(5, True)), key))
    assert shown == {
        "kind": "published", "collection": None, "fingerprint": "00000000deadbeef", "window_start": 60,
        "revision": 5, "final": True, "packs": 5,
    }  # fmt: skip


WINDOW = (CARRIER.fingerprint, 60)
COUNTERS = row_values.encode_counters(row_values.CounterPage(10, 2, np.array([1, 2, 3, 4])))
ROWS: list[tuple[row_keys.Key, bytes, dict[str, object]]] = [
    (
        row_keys.CountKey(*WINDOW, 1, 0), COUNTERS,
        {"kind": "counters", **NAMED, "window_start": 60, "cohort": 1, "page": 0,
         "reports": 10, "packs": 2, "counters": 4},
    ),
    (
        row_keys.IdsKey(*WINDOW, 9), row_values.encode_ids(bytes(32)),
        {"kind": "pack_ids", **NAMED, "window_start": 60, "ids": 2},
    ),
    (
        row_keys.RejectedKey(*WINDOW, "too_late"), row_values.encode_rejected(4),
        {"kind": "rejected", **NAMED, "window_start": 60, "reason": "too_late", "packs": 4},
    ),
    (
        row_keys.TermsKey(CARRIER.fingerprint), row_values.encode_terms(terms_of(CARRIER, 5)),
        {"kind": "terms", **NAMED, "since": 5, "until": None, "window_seconds": 60,
         "spans": [[0, 30, 3600, 4_000_000]]},
    ),
    (
        row_keys.SingleKey.PROGRESS,
        row_values.encode_progress(row_values.LedgerProgress(11, TIME_MS, TIME_MS - 23, 60)),
        {"kind": "progress", "position": 11, "watermark": "2026-01-01T00:00:00.123Z",
         "closed_until": "2026-01-01T00:00:00.100Z", "whole_from": 60},
    ),
    (row_keys.SingleKey.REVISION, row_values.encode_revision(3), {"kind": "revision", "revision": 3}),
    (
        row_keys.SingleKey.GENESIS, row_values.encode_genesis(row_values.Genesis(bytes(16), 4)),
        {"kind": "genesis", "topic_id": "0" * 32, "partitions": 4},
    ),
    (row_keys.SingleKey.OWNER, bytes(16), {"kind": "owner"}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "expected"), ROWS, ids=[each[2]["kind"] for each in ROWS])
def test_rows_of_both_topics_are_reported(
    key: row_keys.Key, value: bytes, expected: dict[str, object]
) -> None:
    data = row_keys.encode_key(key)
    assert said("state", Stored(value, data)) == expected
    assert said("counts", Stored(value, row_keys.with_source(data, 2))) == {"source": 2} | expected
    gone = said("state", Stored(None, data))
    assert gone.pop("deleted") is True
    assert gone.items() <= expected.items()


def test_counts_are_reported_if_asked_for() -> None:
    key = row_keys.encode_key(ROWS[0][0])
    assert said("state", Stored(COUNTERS, key), payload=True)["counts"] == [1, 2, 3, 4]


def test_rejection_is_reported_with_the_place_of_its_pack() -> None:
    value = b'{"version":1,"partition":2,"offset":99,"reason":"duplicate"}'
    assert said("rejected", Stored(value)) == {
        "kind": "rejected", "report_partition": 2, "report_offset": 99, "reason": "duplicate",
    }  # fmt: skip


def test_rejection_of_other_parameters_names_the_collection() -> None:
    value = (
        b'{"version":1,"partition":2,"offset":99,"reason":"unknown_collection",'
        b'"detail":"same name, other parameters","collection":"carrier"}'
    )
    found = said("rejected", Stored(value))
    assert (found["detail"], found["collection"]) == ("same name, other parameters", "carrier")
    assert "detail" not in said("rejected", Stored(value.replace(b"same", b"evil")))


def test_published_collection_is_reported() -> None:
    key, value = encode_publication(publication_of(Collection("plan", KRR.from_epsilon(3, 1.0)), 7))
    found = said("collections", Stored(value, key))
    assert (found["kind"], found["name"], found["revision"]) == ("collection", "plan", 7)
    deleted = said("collections", Stored(None, key))
    assert deleted == {"kind": "collection", "name": "plan", "deleted": True}
    assert said("collections", Stored(b"{}", key))["kind"] == "unreadable"


def test_estimate_is_reported_without_its_columns_unless_asked_for() -> None:
    made = record(["AA", "B6"], [0.9, 0.01], omitted=7, other=Other(0.09, None, 0.0, 1.0))
    stored = Stored(encode_estimate(made), made.key)
    short, whole = said("estimates", stored), said("estimates", stored, payload=True)
    assert whole == {"kind": "estimate"} | json.loads(stored.value or b"")
    assert (short["values"], short["significant"], short["other"]) == (
        2,
        1,
        {"frequency": 0.09, "std_error": None, "low": 0.0, "high": 1.0},
    )
    assert short.keys() == whole.keys() - {"frequency", "count", "std_error", "low", "high"}


def test_counters_of_final_windows_need_payload_option() -> None:
    counts = WindowCounts(np.array([[5, 0, 300, 1]]), np.array([306]), packs=2, rejected=1)
    ((key, value),) = encode_pages(FinalWindow.of(CARRIER, 1_767_225_600, counts))
    short = {
        "kind": "window", **NAMED, "window_start": 1_767_225_600, "window_seconds": CARRIER.window_seconds,
        "page": 1, "pages": 1, "packs": 2, "rejected": 1, "cohorts": 1, "counters": 4,
    }  # fmt: skip
    assert said("windows", Stored(value, key)) == short
    whole = short | {"cohort_sizes": [306], "counts": [5, 0, 300, 1]}
    assert said("windows", Stored(value, key), payload=True) == whole


FRAME = encode_frame(
    [
        encode_upload(
            Upload(
                bytes([number]) * 16,
                (UploadGroup(CARRIER.fingerprint, wire.KRR_NUMBER, 0, 1_767_225_600, 2, 4, b"\x00\x03"),),
            )
        )
        for number in (1, 2)
    ]
    + [b"Mallory"]
)


def test_frame_shows_sums_and_links_no_reports_unless_asked_for() -> None:
    window = {**NAMED, "window_start": 1_767_225_600}
    shown = said("uploads", Stored(FRAME))
    assert shown == {
        "kind": "frame", "uploads": 3, "damaged": {"malformed": 1},
        "groups": [{**window, "groups": 2, "reports": 4}],
    }  # fmt: skip
    whole = said("uploads", Stored(FRAME), payload=True)
    assert "Mallory" not in str(whole)
    assert whole["content"] == [
        {
            "upload_id": f"{number:02x}" * 16,
            "groups": [
                {**window, "mechanism": "k-rr", "cohort": 0, "reports": 2, "width": 4, "payload": [0, 3]}
            ],
        }
        for number in (1, 2)
    ]


def test_control_records_are_shown_without_the_secret() -> None:
    intake = Intake(CARRIER.fingerprint, wire.KRR_NUMBER, 4, 1, 60, 20)
    settings = settings_of(intake, revision=4, retired=(STRANGER,))
    assert said("uploads", Stored(encode_marker(KEYS, 3))) == {"kind": "marker"}
    assert said("uploads", Stored(encode_settings(KEYS, 3, settings))) == {
        "kind": "settings", "revision": 4, "partitions": 2, "batch_reports": 40, "shuffle_reports": 6,
        "pack_reports": 4, "window_uploads": 10_000, "secret_check": KEYS.check.hex(),
        "collections": [{**NAMED, "window_seconds": 60, "grace_seconds": 20}],
        "retired": [{"collection": None, "fingerprint": "00000000deadbeef"}],
    }  # fmt: skip


def outcome_of(reason: str, fingerprint: str | None = None) -> bytes:
    groups = RejectedGroups(reason, 2, 5, fingerprint, None if fingerprint is None else 60)
    accepted = (Accepted(f"{CARRIER.fingerprint:016x}", 60, 9),)
    return OutcomeRecord(1, 10, 20, accepted, (groups,)).encode()


def test_what_became_of_a_batch_is_shown() -> None:
    named = {**NAMED, "window_start": 60}
    shown = {
        "kind": "outcomes", "upload_partition": 1, "begin": 10, "end": 20,
        "accepted": [{**named, "reports": 9}],
    }  # fmt: skip
    rejected = {"reason": "duplicate", "groups": 2, "reports": 5}
    assert said("rejected-uploads", Stored(outcome_of("duplicate"))) == shown | {"rejected": [rejected]}
    with_window = said("rejected-uploads", Stored(outcome_of("duplicate", NAMED["fingerprint"])))
    assert with_window == shown | {"rejected": [rejected | named]}


SECRET = b"Mallory was here"
DAMAGED = [
    ("reports", Stored(SECRET), "malformed"),
    ("reports", Stored(None), "malformed"),
    ("reports", Stored(b"DNBL\x09" + SECRET), "unsupported_version"),
    ("reports", Stored(wire.encode(pack_of(CARRIER, [1]))[:-1] + b"x"), "malformed"),
    ("estimates", Stored(SECRET), "JSON is malformed: invalid character (byte 0)"),
    ("estimates", Stored(b'{"Mallory":1}'), "Object missing required field `version`"),
    ("estimates", Stored(None), "Input data was truncated"),
    ("rejected", Stored(b'{"version":1,"partition":2,"offset":9,"reason":"Mallory"}'),
     "its reason is unknown"),
    ("rejected", Stored(b'{"version":1,"partition":2,"offset":9,"reason":"\xff"}'), "it cannot be decoded"),
    ("rejected", Stored(b'{"x":' + b"[" * 10**5), "it cannot be decoded"),
    ("state", Stored(SECRET, SECRET),
     "row key of unknown kind (16 bytes); a newer version may have written it"),
    ("state", Stored(SECRET, b"P"),
     "row version must be 1, got 77: run the deniable that wrote it, or a newer one"),
    ("state", Stored(b"\x01" + SECRET, b"P"), "row of 17 bytes is damaged, expected 33"),
    ("state", Stored(b"\x01", b"R" + bytes(16) + b"Mallory"), "its reason is unknown"),
    ("counts", Stored(SECRET, None), "counts key of 0 bytes is damaged"),
    ("windows", Stored(SECRET, SECRET), "record of 16 bytes is no page of a window of version 1"),
    ("windows", Stored(None), "record of 0 bytes is no page of a window of version 1"),
    ("uploads", Stored(SECRET), "malformed"),
    ("uploads", Stored(None), "malformed"),
    ("uploads", Stored(b"DNBF\x09" + SECRET), "unsupported_version"),
    ("uploads", Stored(b"DNBC" + SECRET), "it cannot be decoded"),
    ("uploads", Stored(b"DNBC\x09" + SECRET * 2), "unsupported_version"),
    ("rejected-uploads", Stored(SECRET), "must be a record of a batch of uploads"),
    ("rejected-uploads", Stored(None), "must be a record of a batch of uploads"),
    ("rejected-uploads", Stored(outcome_of("Mallory")), "a reason is unknown"),
    ("rejected-uploads", Stored(outcome_of("duplicate", "Mallory")), "it cannot be decoded"),
    ("rejected-uploads", Stored(outcome_of("duplicate", "ab")),
     "a fingerprint must have 16 hexadecimal digits"),
]  # fmt: skip


@pytest.mark.parametrize(("topic", "stored", "problem"), DAMAGED, ids=range(len(DAMAGED)))
@pytest.mark.parametrize("payload", [False, True])
def test_damaged_record_shows_only_place_and_problem(
    topic: str, stored: Stored, problem: str, payload: bool
) -> None:
    size = len(stored.value or b"") + len(stored.key or b"")
    shown = said(topic, stored, payload=payload)
    assert shown == {"kind": "unreadable", "problem": problem, "bytes": size}
    assert "Mallory" not in str(shown)


@given(st.sampled_from(sorted(READERS)), st.binary(max_size=80), st.none() | st.binary(max_size=200))
def test_no_record_whatever_it_holds_ends_the_command(topic: str, key: bytes, value: bytes | None) -> None:
    line_of(fields_of(topic, Inspection(KNOWN, payload=True), 0, Stored(value, key)))


@given(st.data())
def test_no_damaged_row_ends_the_command(data: st.DataObject) -> None:
    key, value, _ = data.draw(st.sampled_from(ROWS))
    damaged = bytearray(row_keys.encode_key(key) + value)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = len(row_keys.encode_key(key))
    fields_of("state", Inspection(KNOWN, payload=True), 0, Stored(bytes(damaged[cut:]), bytes(damaged[:cut])))


@pytest.mark.parametrize("unix_ms", [2**63 - 1, 10**15])
def test_impossible_time_is_a_problem(unix_ms: int) -> None:
    value = row_values.encode_progress(row_values.LedgerProgress(0, unix_ms))
    assert said("state", Stored(value, b"P"))["problem"] == "it cannot be decoded"


@pytest.mark.parametrize("unix_ms", [-(2**63), -(10**15)])
def test_a_time_before_all_times_is_a_problem(unix_ms: int) -> None:
    value = row_values.encode_progress(row_values.LedgerProgress(0, unix_ms))
    assert said("state", Stored(value, b"P"))["problem"].startswith("progress must be in [0, ")


def test_a_line_for_people_holds_no_control_characters() -> None:
    fields = {
        **PLACED,
        "kind": "estimate",
        "collection": "car-rier",
        "values": ["\x1b[2J", "ä"],
        "final": True,
    }
    assert line_of(fields) == (
        "2026-01-01T00:00:00.123Z 3:7 estimate collection=car-rier "
        'values=["\\u001b[2J", "\\u00e4"] final=true'
    )
