"""What a real topic has deleted or withdrawn is in no table and no file, and is named where it is asked."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

import deniable
from deniable.aggregator.estimation.empty_record import empty_record_of
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.config.file import load
from tests.analysis.test_day_files import FINAL
from tests.support.aggregator.builders import changed
from tests.support.deployments import Deployment

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")
pytestmark = [pytest.mark.broker, pytest.mark.slow]

START = 1_769_817_600


@pytest.fixture
def deployment(broker: str, topic_prefix: str, tmp_path: Path) -> Deployment:
    made = Deployment(tmp_path, broker, topic_prefix)
    made.create_topics()
    return made


def final(deployment: Deployment, number: int, revision: int) -> EstimateRecord:
    asked = load(deployment.folder / "deniable.yaml", environment={}).collection("carrier")
    return changed(
        FINAL,
        collection="carrier",
        fingerprint=f"{asked.fingerprint:016x}",
        window_start=START + 2 * number,
        window_end=START + 2 * number + 2,
        revision=revision,
    )


def send(deployment: Deployment, records: Sequence[EstimateRecord], partition: int = 0) -> None:
    topic = f"{deployment.prefix}estimates"
    with KafkaProducer(bootstrap_servers=deployment.servers) as producer:
        for record in records:
            producer.send(topic, encode_estimate(record), record.key, partition=partition)


def starts(table: deniable.ArrowTable) -> set[int]:
    return {(int(each.timestamp()) - START) // 2 for each in table["window_start"].to_pylist()}


def test_period_of_deleted_records_is_warned_of(deployment: Deployment) -> None:
    config, topic = deployment.folder / "deniable.yaml", f"{deployment.prefix}estimates"
    send(deployment, [final(deployment, number, 1) for number in range(4)])
    asked: dict[str, Any] = {"collection": "carrier", "start": START}
    assert starts(deniable.read_estimates(config, **asked)) == {0, 1, 2, 3}
    admin = KafkaAdminClient(bootstrap_servers=deployment.servers)
    try:
        admin.delete_records({TopicPartition(topic, 0): 2})
    finally:
        admin.close()
    said = rf"carrier: {topic} "
    with pytest.warns(UserWarning, match=f"^{said}") as found:
        assert starts(deniable.read_estimates(config, **asked)) == {2, 3}
    assert found[0].filename == __file__
    everything = deniable.read_estimates(config, collection="carrier")  # asks for no period: no warning
    assert starts(everything) == {2, 3}
    done = deployment.run("export", "carrier", "--output", "out", "--from", "2026-01-31T00:00:00Z")
    assert re.match(said, done.stderr), done.stderr
    assert "carrier: 2 windows written to 1 file" in done.stderr


@pytest.mark.parametrize("ending", ["parquet", pytest.param("csv", marks=pytest.mark.nightly)])
def test_withdrawn_window_leaves_table_and_files(deployment: Deployment, ending: str) -> None:
    """Its newest record has no reports: its rows leave the files, and a file without rows is deleted."""
    config, out = deployment.folder / "deniable.yaml", deployment.folder / "out"
    command = ("export", "carrier", "--output", "out", "--format", ending)
    alone = 50_000  # on another day
    send(deployment, [final(deployment, number, 5) for number in (0, 1, 2, alone)])
    assert deployment.run(*command).stderr == "carrier: 4 windows written to 2 files\n"
    withdrawn = [changed(empty(deployment, number), revision=6) for number in (1, alone)]
    send(deployment, withdrawn)
    assert deployment.run(*command).stderr.splitlines() == [
        "carrier: 2 windows removed: no report of them counts any more",
        "carrier: no new windows",
    ]
    from_topic = deniable.read_estimates(config, collection="carrier", other=True)
    assert starts(from_topic) == {0, 2}
    from_files = deniable.read_estimates(collection="carrier", files=out, other=True)
    assert from_files.to_pylist() == from_topic.to_pylist()
    assert len([*out.rglob(f"*.{ending}")]) == 1
    assert deployment.run(*command).stderr == "carrier: no new windows\n"
    send(deployment, [final(deployment, 1, 7)])  # counted after all
    assert deployment.run(*command).stderr == "carrier: 1 window written to 1 file\n"
    assert starts(deniable.read_estimates(collection="carrier", files=out)) == {0, 1, 2}


def empty(deployment: Deployment, number: int) -> EstimateRecord:
    asked = load(deployment.folder / "deniable.yaml", environment={}).collection("carrier")
    shape = (asked.cohorts, asked.width)
    none = WindowCounts(np.zeros(shape, np.int64), np.zeros(shape[0], np.int64), packs=0, rejected=1)
    return empty_record_of(asked, START + 2 * number, none)
