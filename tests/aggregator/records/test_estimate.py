"""The JSON record of an estimate: its fields, its codec, and which of two records wins."""

import json
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deniable.aggregator.records.estimate import EstimateRecord, Other, decode_estimate, encode_estimate
from tests.support.aggregator.builders import FRUIT, T0, estimate_of
from tests.support.messages import PinMessages

FIELDS = {
    "version", "collection", "fingerprint", "window_start", "window_end", "revision", "final", "reports",
    "packs", "rejected", "mechanism", "estimator", "epsilon", "values", "frequency", "count", "std_error",
    "low", "high", "significant", "other", "diagnostics", "omitted", "part", "parts", "mean",
    "quantiles", "pair", "misfit_error", "unreliable", "unexplained_bits",
    "low_all", "high_all", "unbiased", "discovered_at", "density",
}  # fmt: skip
COLUMNS = (
    "values", "frequency", "count", "std_error", "low", "high", "significant",
    "low_all", "high_all", "unbiased",
)  # fmt: skip


def fruit_record(*, final: bool = False, packs: int = 3) -> EstimateRecord:
    return replace(estimate_of(FRUIT), final=final, revision=packs)


GOOD = encode_estimate(fruit_record())


def test_record_has_the_documented_fields() -> None:
    fields = json.loads(encode_estimate(fruit_record(final=True)))
    assert fields.keys() == FIELDS
    expected = {
        "version": 1, "collection": "fruit", "fingerprint": f"{FRUIT.fingerprint:016x}", "window_start": T0,
        "window_end": T0 + 10, "revision": 3, "final": True, "reports": 40, "packs": 1, "rejected": 0,
        "mechanism": "k-rr", "estimator": "mle", "epsilon": FRUIT.mechanism.epsilon, "omitted": 0,
        "part": 1, "parts": 1, "mean": None, "quantiles": [], "pair": None,
        "values": ["apple", "fig", "kiwi"],
    }  # fmt: skip
    assert {key: fields[key] for key in expected} == expected
    assert {len(fields[column]) for column in COLUMNS} == {3}
    assert fields["other"].keys() == {"frequency", "std_error", "low", "high"}


def test_key_is_collection_and_window() -> None:
    assert fruit_record().key == b"fruit/%d" % T0


@pytest.mark.parametrize(
    ("newer", "older", "wins"),
    [((3, False), (2, True), True), ((2, True), (2, False), True), ((2, False), (2, True), False),
     ((1, True), (2, False), False), ((2, True), (2, True), True)],
)  # fmt: skip
def test_higher_revision_wins_then_the_final_record(
    newer: tuple[int, bool], older: tuple[int, bool], wins: bool
) -> None:
    one, other = (fruit_record(packs=packs, final=final) for packs, final in (newer, older))
    assert one.supersedes(other) == wins


def test_decode_after_encode_is_the_identity() -> None:
    record = fruit_record(final=True)
    assert decode_estimate(encode_estimate(record)) == record


GARBAGE = [
    b"",
    b"null",
    b"\xff",
    b"[]",
    b"{}",
    b'{"version":"1"}',
    b'{"collection":"\xff"}',
    b'{"x":' + b"[" * 10**5,
]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_invalid_estimate_raises_decode_error_only(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_estimate(data)


def test_other_of_an_older_record_has_no_interval() -> None:
    fields = json.loads(encode_estimate(fruit_record())) | {"other": {"frequency": 0.25, "std_error": 0.125}}
    assert decode_estimate(json.dumps(fields).encode()).other == Other(0.25, 0.125, None, None)


def test_record_without_parts_has_one_part() -> None:
    old = json.loads(encode_estimate(fruit_record()))
    del old["part"], old["parts"]
    assert decode_estimate(json.dumps(old).encode()) == fruit_record()


@given(st.data())
def test_damaged_record_raises_decode_error_only(data: st.DataObject) -> None:
    good = bytearray(GOOD)
    good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_estimate(bytes(good))
    except msgspec.DecodeError:
        return


def test_invalid_utf_8_is_not_quoted() -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        decode_estimate(b'{"collection":"sender \xff"}')
    assert "sender" not in str(caught.value)


def test_messages(pin_messages: PinMessages) -> None:
    record = encode_estimate(fruit_record())

    def decode(**fields: object) -> object:
        return decode_estimate(json.dumps(json.loads(record) | fields).encode())

    pin_messages(
        {
            "version is 2": partial(decode, version=2),
            "a text that is not UTF-8": partial(decode_estimate, b'{"collection":"\xff"}'),
            "fewer frequencies than values": partial(decode, frequency=[0.5]),
            "no marks of significance": partial(decode, significant=[]),
            "high_all without low_all": partial(decode, high_all=[]),
            "part 2 of 1": partial(decode, part=2),
            "part 0 of 3": partial(decode, part=0, parts=3),
        }
        | {f"window_start is {each}": partial(decode, window_start=each) for each in (-1, 10**12)}
    )
