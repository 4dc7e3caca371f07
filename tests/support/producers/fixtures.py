"""Producers with a fake Kafka, closed at the end of the test."""

import sys
import threading

import pytest

from deniable.config.settings.budget_database import BudgetDatabase
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.config import ProducerConfig
from deniable.producers.pipeline import storing_thread
from deniable.producers.producer import Producer
from tests.support.producers.fake_kafka import FakeKafka
from tests.support.producers.postgres_server import postgres_server
from tests.support.producers.questions import FREE

NEVER = 3600.0
QUICK = ProducerTiming(retry=(0.01,))


@pytest.fixture
def kafka(monkeypatch):
    """The connection of every producer of the test."""
    fake = FakeKafka(acknowledges=True)
    monkeypatch.setattr(storing_thread, "connect", fake.connect)
    return fake


@pytest.fixture
def make(kafka, tmp_path):
    """Build producers that are closed at the end; they tick only on request, and wait as long as needed."""
    created = []

    def make_one(*allowances, **options):
        options = {
            "pack_seconds": NEVER,
            "block_milliseconds": 60_000,
            "data_dir": tmp_path,
            "timing": QUICK,
            **options,
        }
        config = ProducerConfig(
            allowances=allowances or FREE,
            bootstrap_servers="127.0.0.1:9",
            topic="reports",
            partitions=4,
            **options,
        )
        created.append(Producer(config))
        return created[-1]

    yield make_one
    kafka.acknowledges = True
    kafka.acknowledge()
    for each in created:
        each.close()


@pytest.fixture
def one_dies(monkeypatch):
    """Wait for the interpreter's report of a thread's death, before the test may end."""
    shown = threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda _: shown.set())
    yield
    assert shown.wait(120)


@pytest.fixture(scope="session")
def postgres_of_all():
    """One PostgreSQL server for the tests of this process."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def database(postgres_of_all):
    """The address of a new, empty database."""
    return BudgetDatabase(postgres_of_all.new_database())
