"""Rate limits of address prefixes: tokens, prefixes, and which header counts behind a proxy."""

import pytest

from deniable.edge.intake import rate_limits
from deniable.edge.intake.rate_limits import RateLimits, client_prefix, prefix_of


def test_a_minute_of_uploads_may_come_at_once_and_then_one_after_the_other():
    limits = RateLimits(6)
    assert [limits.take(b"a", 1000.0) for _ in range(6)] == [0.0] * 6
    assert limits.take(b"a", 1000.0) == pytest.approx(10.0)
    assert limits.take(b"a", 1009.0) == pytest.approx(1.0)
    assert limits.take(b"a", 1010.0) == 0.0
    assert limits.take(b"a", 1010.0) == pytest.approx(10.0)
    assert limits.take(b"b", 1010.0) == 0.0


@pytest.mark.parametrize("per_minute", [1, 7, 600, pytest.param(999_983, marks=pytest.mark.slow)])
def test_bucket_holds_exactly_its_tokens(per_minute):
    limits = RateLimits(per_minute)
    taken = 0
    while not limits.take(b"a", 12345.678):
        taken += 1
    assert taken == per_minute


def test_no_limit_keeps_no_addresses():
    limits = RateLimits(0)
    assert [limits.take(b"a", 1.0) for _ in range(1000)] == [0.0] * 1000
    assert len(limits) == 0


def test_table_is_bounded_and_forgets_full_buckets_first(monkeypatch):
    monkeypatch.setattr(rate_limits, "MOST_PREFIXES", 10)
    limits = RateLimits(60)
    for number in range(9):
        limits.take(bytes([number]), 0.0)
    for _ in range(60):
        limits.take(b"busy", 5.0)
    limits.take(b"new", 5.0)
    assert len(limits) == 2  # the others had been full again
    assert limits.take(b"busy", 5.0) > 0
    for number in range(1000):
        limits.take(number.to_bytes(4, "big"), 6.0)
        assert len(limits) <= 10


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("192.0.2.7", "c0000207"),
        ("::ffff:192.0.2.7", "c0000207"),
        ("2001:db8:1:22ff::1", "20010db8000122"),
        ("2001:db8:1:2233::1", "20010db8000122"),
        ("fe80::1%eth0", "fe800000000000"),
    ],
)
def test_prefix(address, prefix):
    assert prefix_of(address).hex() == prefix


@pytest.mark.parametrize("address", ["", "shop.example", "192.0.2", "1.2.3.4.5", "a\x00b", "unknown", "é"])
def test_what_is_no_address_has_no_prefix(address):
    assert prefix_of(address) is None


@pytest.mark.parametrize(
    ("forwarded", "proxies", "expected"),
    [
        ("192.0.2.1", 0, "198.51.100.9"),
        ("", 1, "198.51.100.9"),
        ("192.0.2.1", 1, "192.0.2.1"),
        ("203.0.113.5, 192.0.2.1", 1, "192.0.2.1"),
        ("203.0.113.5, 192.0.2.1", 2, "203.0.113.5"),
        ("6.6.6.6, 203.0.113.5,192.0.2.1 ", 2, "203.0.113.5"),
        ("192.0.2.1", 2, "192.0.2.1"),
        ("192.0.2.1:4711", 1, "192.0.2.1"),
        ("[2001:db8::1]:4711", 1, "2001:db8::1"),
        ("2001:db8::1", 1, "2001:db8::1"),
        ("unknown", 1, "198.51.100.9"),
        ("forged, \xff\x00", 1, "198.51.100.9"),
    ],
)
def test_proxies_name_the_client(forwarded, proxies, expected):
    peer = prefix_of("198.51.100.9")
    assert client_prefix(peer, forwarded.encode("latin-1"), proxies) == prefix_of(expected)
