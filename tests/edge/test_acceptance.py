"""Checking an upload: every reason, good groups of a partly bad one, the fast path beside the full one."""

import json
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.edge.intake.acceptance import check_groups, check_upload, group_terms
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.protocol.uploads.upload import (
    MAX_UPLOAD_BYTES,
    UploadError,
    decode_upload,
)
from deniable.protocol.wire import EARLY_SECONDS
from deniable.protocol.wire import GROUP_REASONS as REASONS
from tests.support.edge.uploads import (
    BITS,
    DELIVERY_SECONDS,
    GRACE_SECONDS,
    LARGE,
    SMALL,
    TERMS,
    WHOLE,
    WINDOW_SECONDS,
    group,
    upload,
)
from tests.support.paths import VECTORS

START = 1_767_225_600
NOW = START + 60.0

#: A bad group for every reason.
BAD = {
    "unknown_collection": group(start=START, fingerprint=5),
    "malformed": group(start=START + 1),
    "bad_cohort": group(BITS, start=START, cohort=4),
    "bad_value": group(start=START, rows=b"\x00\x03"),
    "too_early": group(start=START + WINDOW_SECONDS),
    "too_late": group(start=START - 2 * WINDOW_SECONDS),
}


def check(*groups, now=NOW):
    return check_upload(upload(*groups, upload_id=bytes(16)), TERMS, now)


def test_every_reason_has_a_case():
    assert tuple(BAD) == REASONS


@pytest.mark.parametrize("reason", BAD)
def test_reason(reason):
    checked = check(BAD[reason])
    assert (checked.taken, checked.rejected) == (b"", ((0, reason),))
    assert checked.is_outdated == (reason == "unknown_collection")


@pytest.mark.parametrize(
    "bad",
    [
        group(LARGE, bytes(4), START, mechanism=3),
        group(SMALL, start=START, width=4),
        group(BITS, start=START, mechanism=1, width=200, reports=8),
        group(SMALL, bytes(1), START, mechanism=2, width=8),
    ],
)
def test_other_mechanism_or_width_is_malformed(bad):
    assert check(bad).rejected == ((0, "malformed"),)


@pytest.mark.parametrize(
    ("collection", "rows", "is_good"),
    [
        (SMALL, b"\x02", True),
        (SMALL, b"\x03", False),
        (SMALL, b"\x00\x01\x02" * 5, True),
        (SMALL, b"\x00\x01\x02" * 5 + b"\x03", False),
        (LARGE, (999).to_bytes(2, "little"), True),
        (LARGE, (1000).to_bytes(2, "little"), False),
        (WHOLE, b"\xff", True),
        (BITS, b"\xff" * 16, True),
    ],
)
def test_buckets_must_exist(collection, rows, is_good):
    assert bool(check(group(collection, rows, START)).taken) == is_good


@pytest.mark.parametrize(
    ("now", "reasons"),
    [
        (START - EARLY_SECONDS - 0.5, ((0, "too_early"),)),
        (START - EARLY_SECONDS, ()),
        (START + WINDOW_SECONDS + GRACE_SECONDS - DELIVERY_SECONDS, ()),
        (START + WINDOW_SECONDS + GRACE_SECONDS - DELIVERY_SECONDS + 0.5, ((0, "too_late"),)),
    ],
)
def test_window_takes_uploads_for_its_intake_grace(now, reasons):
    assert check(group(start=START), now=now).rejected == reasons


def test_good_groups_of_a_partly_bad_upload_are_taken_under_its_id():
    good = group(start=START), group(LARGE, bytes(4), START)
    body = upload(BAD["bad_value"], good[0], BAD["unknown_collection"], good[1], upload_id=os.urandom(16))
    checked = check_upload(body, TERMS, NOW)
    assert checked.rejected == ((0, "bad_value"), (2, "unknown_collection"))
    assert (checked.groups, checked.reports, checked.is_outdated) == (2, 3, False)
    written = decode_upload(checked.taken)
    assert written.upload_id == checked.upload_id == decode_upload(body).upload_id
    assert [bytes(each.rows) for each in written.groups] == [bytes(each.rows) for each in good]
    assert check_upload(body, TERMS, NOW + 1).taken == checked.taken


def test_good_upload_is_written_as_it_came():
    body = upload(group(start=START), group(BITS, bytes(8), START, cohort=3))
    assert check_upload(body, TERMS, NOW).taken == body
    one = upload(group(start=START))
    assert check_upload(one, TERMS, NOW).taken is one


@pytest.mark.parametrize("vector", json.loads((VECTORS / "uploads.json").read_text())["bad"])
def test_bad_vectors_are_refused_with_their_reason(vector):
    body = bytes.fromhex(vector["upload"]) + bytes(vector.get("zeros_appended", 0))
    with pytest.raises(UploadError, match=vector["reason"]):
        check_upload(body, TERMS, NOW)


def both(body, now):
    """What the fast path and the full one find; they may raise alike."""
    found = []
    for check_one in (check_upload, check_groups):
        try:
            found.append(check_one(body, TERMS, now))
        except UploadError as error:
            found.append(error.reason)
    return found


@given(st.data())
def test_one_good_group_is_found_in_one_step_as_in_many(data):
    """Any byte changed or cut: both find the same."""
    collection = data.draw(st.sampled_from((SMALL, LARGE, WHOLE, BITS)))
    size = TERMS[collection.fingerprint].size
    rows = data.draw(
        st.binary(min_size=size, max_size=4 * size).map(lambda each: each[: len(each) // size * size])
    )
    one = group(collection, rows, START, cohort=data.draw(st.integers(0, 4)))
    body = bytearray(upload(one, upload_id=bytes(16)))
    if data.draw(st.booleans()):
        body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(0, 255))
    body = bytes(body[: data.draw(st.integers(0, len(body)))] if data.draw(st.booleans()) else body)
    fast, full = both(body, data.draw(st.sampled_from((NOW, NOW - 1e4, NOW + 1e4))))
    assert fast == full


def test_check_of_one_group_takes_microseconds():
    """Far from what it takes, 5 us, but a check in many steps and a copy would be seen."""
    body = upload(group(start=START))
    best = min(_seconds(body) for _ in range(5))
    assert best < 100e-6, best
    assert len(body) < MAX_UPLOAD_BYTES


def _seconds(body):
    began = time.perf_counter()
    for _ in range(200):
        check_upload(body, TERMS, NOW)
    return (time.perf_counter() - began) / 200


def test_cells_of_a_number_are_taken_up_to_the_last_reported_one():
    delay = Collection("delay", SquareWave.from_epsilon(0.0, 1.0, 16, 1.0), window_seconds=WINDOW_SECONDS)
    terms = group_terms([delay], 0)
    for cell in range(256):
        body = upload(group(delay, bytes([cell]), start=START), upload_id=bytes(16))
        rejected = () if cell < delay.width else ((0, "bad_value"),)
        assert check_upload(body, terms, NOW).rejected == rejected
    assert delay.width == 24
