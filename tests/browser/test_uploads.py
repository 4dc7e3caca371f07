"""Uploads of the browser client are those of Python; its decoder refuses what Python's does."""

import hmac
import json
from hashlib import blake2b, md5, sha256

import pytest

from deniable.protocol.uploads.upload import decode_upload
from deniable.protocol.wire import report_bytes
from tests.support.edge.browser.node import JavaScriptError, asked, run
from tests.support.paths import VECTORS

EXPECTED = json.loads((VECTORS / "uploads.json").read_text())


@pytest.fixture(scope="module")
def javascript():
    with asked() as answers:
        yield answers


def bytes_of(vector):
    """Return a vector's bytes in hexadecimal; of the largest upload, only head and checksum are stored."""
    data = vector["upload"]
    if isinstance(data, dict):
        return data["head"] + "".join(map(rows_of, vector["groups"])) + data["checksum"]
    return data + "00" * vector.get("zeros_appended", 0)


def rows_of(group):
    reports = group["reports"]
    if isinstance(reports, dict):
        reports = [number % reports["cycle"] for number in range(reports["n"])]
    if group["mechanism"] == 2:
        return "".join(reports)
    size = report_bytes(group["mechanism"], group["width"])
    return "".join(report.to_bytes(size, "little").hex() for report in reports)


@pytest.mark.parametrize("vector", EXPECTED["good"], ids=lambda vector: vector["name"])
def test_upload_is_decoded_and_encoded(javascript, vector):
    given = bytes_of(vector)
    found = javascript.ask("decode", upload=given)
    assert found["again"] == given
    decoded = decode_upload(bytes.fromhex(given))
    assert found["id"] == decoded.upload_id.hex()
    groups = [
        {
            "fingerprint": f"{each.fingerprint:016x}",
            "mechanism": each.mechanism,
            "cohort": each.cohort,
            "windowStart": each.window_start,
            "reports": each.reports,
            "width": each.width,
            "rows": bytes(each.rows).hex(),
        }
        for each in decoded.groups
    ]
    assert found["groups"] == groups
    assert javascript.ask("encode", id=decoded.upload_id.hex(), groups=groups) == given


def test_client_encodes_single_reports_as_the_vectors(javascript):
    """The client's encoder writes one report; each such vector is one."""
    single = [each for each in EXPECTED["good"] if len(each.get("groups", [])) == 1]
    single = [each for each in single if len(each["groups"][0]["reports"]) == 1]
    assert len(single) >= 2
    for vector in single:
        (group,) = vector["groups"]
        if group["window_start"] >= 2**32:
            continue
        found = javascript.ask(
            "one",
            id=vector["upload_id"],
            fingerprint=group["fingerprint"],
            kind=group["mechanism"],
            cohort=group["cohort"],
            windowStart=group["window_start"],
            width=group["width"],
            row=rows_of(group),
        )
        assert found == bytes_of(vector)


@pytest.mark.parametrize("vector", EXPECTED["bad"], ids=lambda vector: vector["name"])
def test_bad_upload_is_refused_for_the_same_reason(javascript, vector):
    with pytest.raises(JavaScriptError) as caught:
        javascript.ask("decode", upload=bytes_of(vector))
    assert caught.value.args[:2] == ("DeniableError", vector["reason"])


@pytest.mark.all
@pytest.mark.parametrize("mutations", [20_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_decoder_raises_only_its_own_error(mutations):
    """Mutations of good uploads: cut, longer, bytes changed, half of them with a right checksum.

    The script fails on any other error, and if mutations stop reaching the checks behind the checksum.
    """
    uploads = [bytes_of(each) for each in EXPECTED["good"] if len(bytes_of(each)) < 4000]
    counts = json.loads(run("fuzz.mjs", json.dumps(uploads), str(mutations)))
    assert sum(counts.values()) == mutations
    assert counts["decoded"] > mutations // 100
    assert counts["malformed"] > mutations // 100
    assert counts["unsupported_version"] > mutations // 10_000


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 1000])
def test_md5_is_md5(javascript, size):
    data = bytes(i * 7 % 256 for i in range(size))
    assert javascript.ask("md5", data=data.hex()) == md5(data, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 1000])
def test_blake2b_is_blake2b(javascript, size):
    data, key = bytes(i * 7 % 256 for i in range(size)), bytes(range(32))
    expected = blake2b(data, key=key, person=b"deniable-seed", digest_size=16).hexdigest()
    assert (
        javascript.ask("blake2b", size=16, data=data.hex(), key=key.hex(), person="deniable-seed") == expected
    )


def test_blake2b_without_a_key_and_of_another_size(javascript):
    """As keys of kept hash functions are made: of texts of more than one block, too."""
    for length in (1, 128, 129, 300):
        data = bytes(i * 7 % 256 for i in range(length))
        found = javascript.ask("blake2b", size=8, data=data.hex(), key="", person="")
        assert found == blake2b(data, digest_size=8).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 1000])
def test_sha256_and_hmac_are_those(javascript, size):
    data = bytes(i * 7 % 256 for i in range(size))
    assert javascript.ask("sha256", data=data.hex()) == sha256(data).hexdigest()
    for key in (bytes(range(8)), bytes(range(32)), bytes(range(64))):
        found = javascript.ask("hmac", data=data.hex(), key=key.hex())
        assert found == hmac.digest(key, data, "sha256").hex()
