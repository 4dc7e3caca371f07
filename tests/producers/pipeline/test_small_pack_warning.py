"""A warning about small packs, checked once a minute, repeated once an hour."""

from deniable.producers.pipeline.small_pack_warning import SmallPacks
from tests.support.brokers.log_lines import messages
from tests.support.messages import PinMessages


def test_small_packs_warn_after_a_minute_then_hourly(caplog, pin_messages: PinMessages) -> None:
    watch = SmallPacks(now=0.0)
    for reports in (9, 1, 1000):
        watch.note(reports)
    watch.check(59.9)
    assert messages(caplog) == []
    watch.check(60.0)
    (shown,) = messages(caplog)
    pin_messages({"most packs are small": lambda: shown})
    for now in (120.0, 3659.9):
        watch.note(1)
        watch.check(now)
    assert len(messages(caplog)) == 1
    watch.check(3660.0)
    assert len(messages(caplog)) == 2


def test_packs_of_ten_cause_no_warning(caplog):
    watch = SmallPacks(now=0.0)
    for reports in (1, 10, 10):
        watch.note(reports)
    watch.check(60.0)
    watch.note(1)
    watch.check(119.0)
    assert messages(caplog) == []
    watch.check(120.0)
    assert len(messages(caplog)) == 1


def test_no_packs_cause_no_warning(caplog):
    SmallPacks(now=0.0).check(60.0)
    assert messages(caplog) == []
