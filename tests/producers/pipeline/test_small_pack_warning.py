"""A warning about small packs, checked once a minute, repeated once an hour."""

import pytest

from producers.pipeline.small_pack_warning import SmallPacks


@pytest.fixture
def logged(caplog):
    def count():
        found = caplog.text.count("packs are small")
        caplog.clear()
        return found

    return count


def test_small_packs_warn_after_a_minute_then_hourly(logged):
    watch = SmallPacks(now=0.0)
    for reports in (9, 1, 1000):
        watch.note(reports)
    watch.check(59.9)
    assert logged() == 0
    watch.check(60.0)
    assert logged() == 1
    for now in (120.0, 3659.9):
        watch.note(1)
        watch.check(now)
    assert logged() == 0
    watch.check(3660.0)
    assert logged() == 1


def test_packs_of_ten_cause_no_warning(logged):
    watch = SmallPacks(now=0.0)
    for reports in (1, 10, 10):
        watch.note(reports)
    watch.check(60.0)
    watch.note(1)
    watch.check(119.0)
    assert logged() == 0
    watch.check(120.0)
    assert logged() == 1


def test_no_packs_cause_no_warning(logged):
    SmallPacks(now=0.0).check(60.0)
    assert logged() == 0
