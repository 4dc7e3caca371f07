"""Which control records a relay appends, and when: clocks are given."""

import pytest

from deniable.protocol.uploads.frame import RESTATE_SECONDS
from deniable.relay.control import RelaySettings, decode_control, encode_settings
from deniable.relay.fold import Fold, Start
from deniable.relay.service.following import Following, following, names_of
from deniable.relay.service.pulse import Pulse
from tests.support.relay.logs import BEGIN, KEYS, LATER, LONG, PARTITION, SHORT, RandomLog, settings_of

OWN = settings_of(SHORT, LONG)
IDLE = 1.0
LONG_SECONDS = 1_000_000
RHYTHMS = [(LONG_SECONDS, 0)]
NOW_MS = BEGIN * 1000.0


def decoded(value: bytes | None) -> RelaySettings | str | None:
    if value is None:
        return None
    return decode_control(KEYS, PARTITION, value) or "marker"


class Beats:
    """A fold and its pulse; what is due is appended at once, and applied unless asked otherwise."""

    def __init__(self, own: RelaySettings = OWN, idle: float = IDLE) -> None:
        self.fold, self.pulse = Fold(PARTITION, KEYS, Start(0)), Pulse(own, KEYS, idle, RHYTHMS)
        self.offset = 0

    def apply(self, value: bytes, append_ms: float = NOW_MS) -> None:
        self.fold.apply(self.offset, int(append_ms), value)
        self.offset += 1

    def beat(
        self, now: float, now_ms: float = NOW_MS, *, is_at_end: bool = True, applies: bool = True
    ) -> RelaySettings | str | None:
        value = self.pulse.due(self.fold, is_at_end, now, now_ms)
        found = decoded(value)
        if value is not None:
            self.pulse.appended(found != "marker", self.offset, now)
            if applies:
                self.apply(value, now_ms)
        return found

    def upload(self) -> None:
        """Apply a frame that counts."""
        log = RandomLog(3)
        log.settings = OWN
        while not self.fold.windows.open:
            self.apply(log._record())


def test_a_log_without_settings_gets_ours_once() -> None:
    beats = Beats()
    assert beats.beat(0.0, is_at_end=False) is None
    assert beats.beat(0.0, applies=False) == OWN
    assert beats.beat(0.1) is None  # appended, and not read yet


def test_settings_are_stated_again_before_retention_deletes_them() -> None:
    beats = Beats()
    assert beats.beat(0.0) == OWN
    assert beats.beat(RESTATE_SECONDS - 1) is None
    assert beats.beat(RESTATE_SECONDS) == OWN


def test_a_relay_with_an_older_file_states_the_log_s_settings() -> None:
    beats, newer = Beats(), settings_of(SHORT, revision=2, retired=(LONG.fingerprint,))
    beats.apply(encode_settings(KEYS, PARTITION, newer))
    assert beats.beat(0.0) == newer
    assert beats.beat(1.0) is None


def test_a_newer_file_replaces_the_settings_and_retires_what_it_lacks() -> None:
    beats = Beats(settings_of(SHORT, LATER, revision=2))
    beats.apply(encode_settings(KEYS, PARTITION, OWN))
    assert beats.beat(0.0) == settings_of(SHORT, LATER, revision=2, retired=(LONG.fingerprint,))
    assert beats.fold.settings is not None
    assert beats.fold.settings.revision == 2
    assert beats.beat(0.1) is None


def test_what_was_retired_is_left_out_and_named() -> None:
    held = settings_of(SHORT, revision=2, retired=(LONG.fingerprint,))
    found = following(settings_of(SHORT, LONG, revision=3), held)
    assert found.returned == (LONG.fingerprint,)
    assert found.settings == settings_of(SHORT, revision=3, retired=(LONG.fingerprint,))
    assert found.settings.follow(held)
    assert names_of((SHORT.fingerprint, 10), {SHORT.fingerprint: "short"}) == "short, 000000000000000a"


def test_other_settings_under_the_same_revision_are_noticed_once() -> None:
    beats = Beats(settings_of(SHORT, LONG, shuffle_reports=7))
    beats.apply(encode_settings(KEYS, PARTITION, OWN))
    beats.beat(0.0)
    assert beats.pulse.news() == Following(differs=True)
    beats.beat(0.1)
    assert beats.pulse.news() is None
    assert following(OWN, OWN) == Following()


def test_a_batch_that_waits_ends_by_one_marker() -> None:
    beats = Beats()
    beats.beat(0.0)
    beats.upload()
    assert beats.beat(10.0) is None
    assert beats.beat(10.0 + IDLE - 0.01) is None
    assert beats.beat(10.0 + IDLE, applies=False) == "marker"
    assert beats.beat(99.0) is None
    beats.fold.position += 1
    assert beats.beat(99.0) == "marker"
    assert beats.beat(200.0) is None  # nothing waits


def test_a_window_that_has_closed_gets_a_marker() -> None:
    """It holds reports back, though no batch waits."""
    beats = Beats()
    beats.beat(0.0)
    beats.upload()
    beats.beat(5.0)
    assert beats.beat(5.0 + IDLE) == "marker"
    closes_ms = beats.fold.windows.next_close_ms()
    assert closes_ms is not None
    assert beats.beat(20.0, closes_ms) is None
    assert beats.beat(20.0, closes_ms + 51) == "marker"


@pytest.mark.parametrize("idle", [IDLE, 3600.0])
def test_the_end_of_a_window_without_uploads_gets_a_marker_too(idle: float) -> None:
    """Workers keep it open until relays have sent all; strangers' records and long batches delay nothing."""
    beats, closes_ms = Beats(idle=idle), NOW_MS - NOW_MS % (1000 * LONG_SECONDS) + 1000 * LONG_SECONDS
    beats.beat(0.0)
    for window in range(3):
        now = 5.0 * (window + 1)
        beats.apply(b"no upload", closes_ms + 10)
        assert beats.beat(now, closes_ms + 50) is None
        assert beats.beat(now, closes_ms + 51) == "marker"
        assert beats.beat(now + 2, closes_ms + 2051) is None
        closes_ms += 1000 * LONG_SECONDS
