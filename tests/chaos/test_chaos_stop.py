"""SIGTERM under load: the worker drains, leaves the group and ends; another takes over at once."""

import re
import signal
import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from deploy.config.file import Configuration
from tests.chaos.load.load import Load
from tests.chaos.processes.collection_setup import configure
from tests.chaos.processes.positions import committed, log_ends
from tests.chaos.processes.workers import Worker, Workers
from tests.chaos.run import replayed
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

STOP_SECONDS = 30.0  # 10 on a machine that is not overloaded
AT_ONCE_SECONDS = 9.0  # less than the session timeout, after which the group replaces a silent worker
BEHIND_SECONDS = 0.3  # of counting, on a busy machine; 0.5 s more without a last checkpoint


def members(configuration: Configuration) -> int:
    """Return the number of the group's members."""
    with KafkaAdminClient(bootstrap_servers=configuration.kafka.bootstrap_servers) as admin:
        return len(admin.describe_groups([configuration.topics.group])[configuration.topics.group]["members"])


def owned(worker: Worker) -> set[int]:
    """Return the two partitions whose ledgers it opened since the last rebalance."""
    opened = re.findall(r"ledger open .*partition=.*?(\d)", worker.log.read_text())
    return {int(partition) for partition in opened[-2:]}


def test_stopped_worker_has_stored_all_and_left(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    configuration = configure(tmp_path, broker, topic_prefix)
    workers, load = Workers(configuration, tmp_path), Load(configuration, 1000, 0.0, 1)
    try:
        shown, other = workers.start(), workers.start()
        assert wait_until(lambda: min(shown.says("ledger open"), other.says("ledger open")) >= 2, 120)
        load.start()
        time.sleep(2)
        partitions, opened, ends = owned(shown), other.says("ledger open"), log_ends(configuration)
        time.sleep(BEHIND_SECONDS)
        shown.signal(signal.SIGTERM)
        status = shown.child.wait(STOP_SECONDS)
        assert (status, members(configuration)) == (0, 1), workers.describe()
        assert len(partitions) == 2
        stored = committed(configuration)
        assert all(stored[each] >= ends[each] for each in partitions)
        assert wait_until(lambda: other.says("ledger open") >= opened + 4, AT_ONCE_SECONDS), (
            workers.describe()
        )

        assert shown.says("Traceback") == shown.says("error") == 0, workers.describe()
        load.stopped.set()
        load.join()
        assert replayed(configuration) == 0
    finally:
        load.stopped.set()
        workers.stop()
