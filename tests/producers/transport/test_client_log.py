"""What an application's log shows of kafka-python."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.producers.topics import make_topic

pytestmark = pytest.mark.all

APPLICATION = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, format="%(name)s")
import deniable
from pathlib import Path
servers, topic, folder, *levels = sys.argv[1:]
if levels:
    logging.getLogger("kafka").setLevel(levels[0])
Path(folder, "deniable.yaml").write_text('''
kafka: {bootstrap_servers: "%s", topic_prefix: "%s", partitions: 2}
collections:
  - {name: plan, mechanism: k-rr, size: 3, epsilon: 2, window_seconds: 60, grace_seconds: 5, budget: none}
''' % (servers, topic.removesuffix("reports")))
producer = deniable.open_producer(Path(folder, "deniable.yaml"))
producer.report("plan", 1, clients=None)
try:
    producer.close(timeout=12)
except deniable.DeliveryError:
    print("not delivered")
known = logging.root.manager.loggerDict
loggers = [each for name, each in known.items() if name.startswith("kafka.") and hasattr(each, "filters")]
print(len(loggers) > 10, all(each.filters for each in loggers))
print("application's own", file=sys.stderr)
from kafka import KafkaConsumer
try:
    KafkaConsumer(bootstrap_servers=servers, bootstrap_timeout_ms=1000).close()
except Exception as error:
    print(type(error).__name__)
"""


def names_logged(*arguments: object) -> tuple[str, list[str], list[str]]:
    """Run the application; return its output, and the loggers of what a producer and the application log."""
    command = [sys.executable, "-c", APPLICATION, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    ours, _, own = done.stderr.partition("application's own")
    return done.stdout, ours.split(), own.split()


def of_kafka(names: list[str]) -> set[str]:
    return {name for name in names if name.partition(".")[0] == "kafka"}


@pytest.mark.broker
def test_producer_adds_no_lines_of_kafka_to_the_log(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """Not at level DEBUG either; the application's own consumer still logs."""
    with make_topic(broker, f"{topic_prefix}reports", 2) as topic:
        output, ours, own = names_logged(broker, topic, tmp_path)
    assert "not delivered" not in output
    assert "True True" in output
    assert of_kafka(ours) == set()
    assert of_kafka(own) != set()


@pytest.mark.slow
@pytest.mark.nightly
def test_broker_that_is_away_is_logged_by_us_alone(tmp_path: Path) -> None:
    output, ours, own = names_logged("127.0.0.1:9", "deniable-reports", tmp_path)
    assert "not delivered" in output
    assert "deniable.producers.transport.sender" in ours
    assert of_kafka(ours) == set()
    assert of_kafka(own) != set()


@pytest.mark.slow
@pytest.mark.nightly
def test_application_may_ask_for_kafka_lines(tmp_path: Path) -> None:
    _, ours, _ = names_logged("127.0.0.1:9", "deniable-reports", tmp_path, "INFO")
    assert of_kafka(ours) != set()
