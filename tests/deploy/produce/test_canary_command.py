"""`deniable canary`: what it draws, sends and refuses, with a stand-in for Kafka and with a real one."""

import re
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click import Command
from click.testing import CliRunner
from scipy.special import chdtri

from deniable.config.file import load
from deniable.deploy.produce import canary as canary_run
from deniable.deploy.produce.canary import draw, run_canary
from deniable.deploy.produce.canary_command import canary
from deniable.deploy.produce.command import produce as produce_command
from deniable.deploy.produce.timing import RunTiming
from deniable.estimators.canary import true_frequencies
from deniable.estimators.canary_fit import chi_square
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.opening.from_file import producer_config
from deniable.producers.pipeline import storing_thread
from deniable.protocol.wire import buckets, decode
from tests.support.deploy.collection_texts import HEAD, KRR_ENTRY
from tests.support.deployments import Deployment
from tests.support.messages import PinMessages
from tests.support.processes import wait_until
from tests.support.producers.fake_kafka import FakeKafka

CANARY_ENTRY = """\
  - {name: canary, mechanism: k-rr, VALUES, other: false, epsilon: 2.0, canary: true,
     window_seconds: 2, grace_seconds: 1, minimum_reports: 1000, budget: none}
"""
VALUES = ("size: 4", "values: [one, two, three, four]")
REPORTS = 20_000
SETTLE_SECONDS = 40


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    entry = CANARY_ENTRY.replace("VALUES", VALUES[0])
    (tmp_path / "deniable.yaml").write_text(HEAD + KRR_ENTRY + entry, encoding="utf-8")
    return tmp_path


def test_draws_are_the_quantiles_of_their_words() -> None:
    """The first value has 4/7 of all words, the second 2/7, the third 1/7."""
    words = [0, 4 * 2**64 // 7 - 2**12, 4 * 2**64 // 7 + 2**12, 6 * 2**64 // 7 + 2**12, 2**64 - 1]
    assert draw(np.array(words, np.uint64), 3).tolist() == [0, 0, 1, 2, 2]
    even = (np.arange(7000, dtype=np.uint64) * np.uint64(2**64 // 7000)) + np.uint64(1)
    assert np.bincount(draw(even, 3)) / 7000 == pytest.approx(true_frequencies(3), abs=1e-3)


@pytest.mark.parametrize("values", VALUES)
def test_canary_sends_the_known_distribution_at_the_given_rate(
    folder: Path, values: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten steps of a window each, then Ctrl-C. Both cases together alarm falsely once in 10^6 runs."""
    kafka, clock = FakeKafka(acknowledges=True), SimpleNamespace(now=0.0)

    def sleep(_: float) -> None:
        clock.now += 2
        if clock.now > 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(storing_thread, "connect", kafka.connect)
    monkeypatch.setattr(canary_run, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
    text = (HEAD + CANARY_ENTRY).replace("VALUES", values)
    (folder / "deniable.yaml").write_text(text, encoding="utf-8")
    loaded = load(folder / "deniable.yaml", environment={})
    (collection,) = loaded.collections
    with pytest.raises(KeyboardInterrupt):
        run_canary(
            replace(producer_config(loaded, block_milliseconds=60_000), timing=ProducerTiming(retry=(0.01,))),
            REPORTS,
            metrics_port=None,
            timing=RunTiming(stop=5.0),
        )
    sent = np.concatenate([buckets(decode(record["value"])) for record in kafka.sent])
    assert len(sent) == 10 * REPORTS
    counts, rare = np.bincount(sent, minlength=4), chdtri(3, 5e-7)
    assert chi_square(counts, collection.mechanism) < rare
    assert chi_square(counts[::-1], collection.mechanism) > rare
    assert str(10 * REPORTS) in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_messages(pin_messages: PinMessages) -> None:
    def refusal(command: Command, *arguments: str) -> str:
        ended = CliRunner().invoke(command, arguments, input="value\n1\n")
        assert ended.exit_code == 2
        return ended.stderr.splitlines()[-1]

    pin_messages(
        {
            "fewer reports than minimum_reports": lambda: refusal(canary, "canary", "--reports", "999"),
            "values for a canary": lambda: refusal(
                produce_command, "canary", "--field", "value", "--no-clients"
            ),
        }
    )


def gauges(page: str) -> dict[str, float]:
    """Of canaries, by name."""
    with closing(HTTPConnection(page.split("/")[2], timeout=60)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    found: list[Any] = re.findall(r'^(deniable_canary_\w+)\{collection="canary"\} (\S+)$', text, re.MULTILINE)
    return {name: float(value) for name, value in found}


@pytest.mark.broker
@pytest.mark.nightly
def test_a_sound_deployment_is_below_the_threshold(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, broker, topic_prefix)
    with (tmp_path / "deniable.yaml").open("a", encoding="utf-8") as file:
        file.write(CANARY_ENTRY.replace("VALUES", VALUES[1]))
    deployment.create_topics()
    with deployment.running("worker.log", "aggregate", "--web-port", "0"):
        page = deployment.address("worker.log")
        with deployment.running("canary.log", "canary", "canary", "--reports", str(REPORTS)):
            assert wait_until(lambda: "deniable_canary_chi_square" in gauges(page), SETTLE_SECONDS), (
                deployment.output("worker.log")
            )
        shown = gauges(page)
    assert 0 < shown["deniable_canary_chi_square"] < shown["deniable_canary_threshold"]
    assert re.search(r"\d+ reports sent in \d+ packs", deployment.output("canary.log"))
