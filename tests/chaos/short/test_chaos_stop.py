"""SIGTERM under load: the worker leaves the group and ends; another goes on from what it has stored."""

import signal
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from deniable.config.file import Configuration
from tests.chaos.load.load import Load
from tests.chaos.processes.collection_setup import configure
from tests.chaos.processes.positions import committed
from tests.chaos.processes.workers import Workers
from tests.chaos.run import replayed
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all]


def members(configuration: Configuration) -> int:
    """Return the number of the group's members."""
    with KafkaAdminClient(bootstrap_servers=configuration.kafka.bootstrap_servers) as admin:
        return len(admin.describe_groups([configuration.topics.group])[configuration.topics.group]["members"])


def test_stopped_worker_has_left_and_another_goes_on(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """A member that ends without leaving stays in the group for the time of its session."""
    configuration = configure(tmp_path, broker, topic_prefix)
    workers, load = Workers(configuration, tmp_path), Load(configuration, 500, 0.0, 1)
    try:
        stopped, other = workers.start(), workers.start()
        assert wait_until(lambda: stopped.ready and other.ready), workers.describe()
        assert wait_until(lambda: len(stopped.positions()) == len(other.positions()) == 2), workers.describe()
        load.start()
        # That counts of the last moment are stored is seen where time stands still: test_owner.py.
        assert wait_until(lambda: min(stopped.positions().values()) > 100), workers.describe()
        counted, opened = stopped.positions(), other.says("ledger open")
        stopped.signal(signal.SIGTERM)
        status = stopped.child.wait(120)
        assert (status, members(configuration)) == (0, 1), workers.describe()
        stored = committed(configuration)
        assert all(stored[partition] >= counted[partition] for partition in counted)
        assert wait_until(lambda: len(other.positions()) == 4), workers.describe()
        assert wait_until(lambda: other.ready), other.describe()
        assert other.says("ledger open") == opened + 2, other.describe()  # its own two it has kept
        assert stopped.says("Traceback") == stopped.says("error") == 0, workers.describe()
        load.stopped.set()
        load.join()
        assert replayed(configuration) == 0
    finally:
        load.stopped.set()
        workers.stop()
