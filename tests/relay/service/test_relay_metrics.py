"""What Prometheus sees of a relay's batches and partitions."""

import pytest
from prometheus_client import CollectorRegistry

from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.honest import HonestShuffle
from deniable.estimators.mechanisms.krr import KRR
from deniable.relay.fold import Start
from deniable.relay.service.metrics import RelayMetrics, ShuffledEpsilons
from deniable.relay.service.partition import PartitionRelay
from deniable.relay.windows import ClosedWindow
from tests.relay.service.test_outcomes import Stored
from tests.support.relay.logs import KEYS, LONG, PARTITION, PARTITIONS, SHORT, RandomLog

NAMES = {SHORT.fingerprint: "short", LONG.fingerprint: "long"}


@pytest.mark.slow
def test_figures_are_those_of_the_batches_sent():
    metrics = RelayMetrics(NAMES)
    relay = PartitionRelay(PARTITION, KEYS, Start(0), -1, ("reports", "rejected"), PARTITIONS)
    sealed = relay.take(Stored(*record) for record in RandomLog(2).grow(200).records)
    for each in sealed:
        metrics.sent(each)
    metrics.show([relay], {PARTITION: relay.fold.position + 7})
    value = metrics.registry.get_sample_value
    outcomes = [each.batch.outcomes for each in sealed]
    assert value("deniable_relay_batches_total") == len(sealed)
    assert value("deniable_relay_packs_total") == sum(each.packs for each in sealed)
    assert value("deniable_relay_packed_reports_total") == sum(each.reports for each in sealed)
    assert value("deniable_relay_uploads_total") == sum(each.uploads for each in outcomes) > 0
    for reason in ("duplicate", "too_late", "malformed"):
        labels = {"reason": reason}
        found = [each.rejected for each in outcomes]
        groups = sum(count for each in found for key, count in each.items() if key[2] == reason)
        assert value("deniable_relay_groups_rejected_total", labels) == groups > 0
    releases = [release for each in sealed for release in each.batch.releases]
    mine = [each.shuffled for each in releases if each.intake.fingerprint == SHORT.fingerprint]
    short = {"collection": "short"}
    assert value("deniable_relay_shuffled_reports_count", short) == len(mine)
    assert value("deniable_relay_shuffled_reports_sum", short) == sum(mine)
    assert value("deniable_relay_shuffled_reports_least", short) == min(mine)
    partition = {"partition": str(PARTITION)}
    assert value("deniable_relay_lag_records", partition) == 7
    assert value("deniable_relay_rewind_records", partition) == relay.fold.position - relay.rewind
    windows = relay.fold.windows.open.values()
    assert value("deniable_relay_upload_ids") == sum(len(each.ids) for each in windows)
    held = sum(each.held_reports for each in windows)
    shown = [
        value("deniable_relay_held_reports", {"collection": each}) or 0
        for each in (*NAMES.values(), "unknown")
    ]
    assert sum(shown) == held > 0
    metrics.show([], {})
    assert value("deniable_relay_lag_records", partition) is None
    assert value("deniable_relay_upload_ids") == 0


def test_collections_are_exported_from_the_start_and_the_least_is_not():
    value = RelayMetrics(NAMES).registry.get_sample_value
    assert value("deniable_relay_reports_total", {"collection": "long", "result": "accepted"}) == 0
    assert value("deniable_relay_shuffled_reports_least", {"collection": "long"}) is None


def closed(start: int, least: int, fingerprint: int = SHORT.fingerprint) -> ClosedWindow:
    return ClosedWindow(fingerprint, start, least)


@pytest.mark.slow
def test_the_newest_closed_window_has_the_epsilon_of_its_smallest_order():
    shuffle = HonestShuffle.of(KRR.from_epsilon(16, 1.0), 1e-6, 0.5)
    registry, now = CollectorRegistry(), [0.0]
    gauges = ShuffledEpsilons(NAMES, {SHORT.fingerprint: shuffle}, registry, lambda: now[0])
    labels = {"collection": "short"}
    value = registry.get_sample_value
    assert value("deniable_epsilon_shuffled", labels) is None
    for window in (closed(60, 3000), closed(60, 2000), closed(60, 9000), closed(0, 4000)):
        gauges.closed(window)
    gauges.closed(closed(60, 2000, LONG.fingerprint))  # memoized: it has no such epsilon
    assert value("deniable_relay_shuffled_reports_honest", labels) == 1000
    high = shuffled_epsilon(shuffle.blanket, 1000, 1e-6).high
    assert value("deniable_epsilon_shuffled", labels) == high == pytest.approx(0.06427, abs=1e-5)
    assert value("deniable_epsilon_shuffled", {"collection": "long"}) is None
    gauges.closed(closed(120, 90))
    assert value("deniable_relay_shuffled_reports_honest", labels) == 45
    now[0] = 1000.0  # nothing closed since: the newest one stays
    assert value("deniable_relay_shuffled_reports_honest", labels) == 45


@pytest.mark.slow
def test_a_scrape_every_five_minutes_sees_the_smallest_order_of_every_window():
    """Also of windows that close together, or in a partition that lags behind."""
    shuffle = HonestShuffle.of(KRR.from_epsilon(16, 1.0), 1e-6, 0)
    registry, now = CollectorRegistry(), [0.0]
    gauges = ShuffledEpsilons(NAMES, {SHORT.fingerprint: shuffle}, registry, lambda: now[0])
    labels = {"collection": "short"}
    for start, least in ((0, 300), (60, 50), (120, 700), (180, 900)):
        gauges.closed(closed(start, least))
    now[0] = 200.0
    gauges.closed(closed(120, 100))
    for seconds, least in ((300, 50), (301, 100), (500, 100), (501, 900)):
        now[0] = float(seconds)
        assert registry.get_sample_value("deniable_relay_shuffled_reports_honest", labels) == least


@pytest.mark.slow
def test_closed_windows_have_the_smallest_order_of_all_their_releases():
    relay = PartitionRelay(PARTITION, KEYS, Start(0), -1, ("reports", "rejected"), PARTITIONS)
    sealed = relay.take(Stored(*record) for record in RandomLog(2).grow(400).records)
    least: dict[tuple[int, int], int] = {}
    closed_windows = [window for each in sealed for window in each.batch.closed]
    for each in sealed:
        for release in each.batch.releases:
            key = (release.intake.fingerprint, release.window_start)
            least[key] = min(release.shuffled, least.get(key, release.shuffled))
    assert closed_windows
    for window in closed_windows:
        assert window.least_shuffled == least[window.fingerprint, window.start]
