"""The page of a real worker on a real broker: its bars match the topic, also after a kill."""

import signal
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, TopicPartition

from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate
from deniable.deploy.broker.child_processes import signal_group
from tests.support.aggregator.browser import Watched, chromium, watched
from tests.support.deployments import Deployment
from tests.support.processes import new_port, wait_until

pytestmark = pytest.mark.broker

REPORTS = 3000
SECONDS = 60


def send(deployment: Deployment) -> None:
    """Send reports at one time, so at most two windows contain them."""
    lines = "".join(f"{'AA' if number % 3 else 'B6'}\n" for number in range(REPORTS)).encode()
    sent = deployment.run(
        "produce", "carrier", "--field", "carrier", "--no-clients", given=b"carrier\n" + lines
    )
    assert sent.returncode == 0, sent.stderr


def newest(deployment: Deployment, reports: int) -> EstimateRecord | None:
    """The newest window's final estimate from the topic, once all windows together have this many reports."""
    windows: dict[int, EstimateRecord] = {}
    for record in sorted(published(deployment), key=lambda record: (record.revision, record.final)):
        windows[record.window_start] = record
    if sum(record.reports for record in windows.values()) < reports:
        return None
    found = windows[max(windows)]
    return found if found.final else None


def published(deployment: Deployment) -> list[EstimateRecord]:
    """All records in the topic `estimates` now."""
    found: list[EstimateRecord] = []
    consumer = KafkaConsumer(bootstrap_servers=deployment.servers, isolation_level="read_committed")
    with closing(consumer):
        sources = [TopicPartition(f"{deployment.prefix}estimates", partition) for partition in range(2)]
        consumer.assign(sources)
        consumer.seek_to_beginning()
        for source, end in consumer.end_offsets(sources).items():
            while consumer.position(source) < end:
                for records in consumer.poll(timeout_ms=500).values():
                    found += [decode_estimate(record.value) for record in records]
    return found


def settled(deployment: Deployment, reports: int) -> EstimateRecord:
    """Wait for that estimate."""
    assert wait_until(lambda: newest(deployment, reports) is not None, SECONDS)
    record = newest(deployment, reports)
    assert record is not None
    return record


def shows(shown: Watched, record: EstimateRecord) -> bool:
    """Whether the rows of the page match the significant values of this record."""
    expected = {
        value: f"{100 * record.frequency[i]:.1f}"
        for i, value in enumerate(record.values)
        if record.significant[i]
    }
    rows = {value: cells[1] for value, cells in shown.rows("carrier").items()}
    return expected.items() <= rows.items() and reported(shown) == f"{record.reports:,}"


def reported(shown: Watched) -> str:
    """Number of reports on the page."""
    reports: str = shown.section("carrier").locator(".reports").inner_text()
    return reports


def metrics(address: str) -> str:
    """Metrics exported by a worker."""
    with urlopen(f"{address.rstrip('/')}/metrics", timeout=SECONDS) as answer:  # noqa: S310  loopback
        return str(answer.read().decode())


@pytest.mark.nightly
def test_page_matches_the_topic_after_a_kill(broker: str, tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, broker, f"test-{uuid4().hex[:12]}-")
    deployment.create_topics()
    with chromium() as browser, ExitStack() as stack:
        with deployment.running("worker.log", "aggregate", "--web-port", str(new_port())) as worker:
            address = deployment.address("worker.log")
            shown = stack.enter_context(watched(browser, address, worker_goes=True))
            send(deployment)
            record = settled(deployment, REPORTS)
            assert wait_until(lambda: shows(shown, record), SECONDS)
            signal_group(worker, signal.SIGKILL)
            shown.status("Worker unreachable")
        port = address.rstrip("/").rpartition(":")[2]
        stack.enter_context(deployment.running("again.log", "aggregate", "--web-port", port))
        shown.page.locator('#status:not([data-state="unreachable"])').wait_for(timeout=1000 * SECONDS)
        assert wait_until(lambda: shows(shown, record), SECONDS)
        restored = f'deniable_estimate_reports{{collection="carrier"}} {float(record.reports)}\n'
        assert wait_until(lambda: restored in metrics(address), SECONDS)
        send(deployment)
        later = settled(deployment, 2 * REPORTS)
        assert wait_until(lambda: shows(shown, later), SECONDS)
