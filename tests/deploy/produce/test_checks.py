"""Databases with budgets that refuse for good, and what becomes of lines that wait for one."""

from pathlib import Path

import pytest

from deniable.config.file import load
from deniable.deploy.produce.checks import FOR_GOOD, check_destination
from deniable.deploy.produce.run import uncharged_notice
from tests.support.deployments import Deployment
from tests.support.messages import PinMessages
from tests.support.processes import new_port


@pytest.mark.parametrize(
    ("answer", "is_for_good"),
    [
        ('FATAL:  database "absent" does not exist', True),
        ('FATAL:  password authentication failed for user "deniable"', True),
        ('FATAL:  role "nobody" does not exist', True),
        ("fe_sendauth: no password supplied", True),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1"', True),
        ('FATAL:  role "reader" is not permitted to log in', True),
        ('connection to server at "127.0.0.1", port 5432 failed: Connection refused', False),
        ("FATAL:  the database system is starting up", False),
        ("FATAL:  sorry, too many clients already", False),
        ("FATAL:  terminating connection due to administrator command", False),
    ],
)
def test_only_refusals_that_waiting_cannot_change_end_a_run(answer: str, is_for_good: bool) -> None:
    assert (FOR_GOOD.search(f"budget store 127.0.0.1:5432/deniable: {answer}") is not None) is is_for_good


@pytest.mark.parametrize(("sections", "seconds"), [("", 10), ("relay: {delivery_seconds: 4}\n", 26)])
def test_grace_of_an_edge_is_named(
    sections: str, seconds: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Less than the workers' 30 s by what relays need: 10 s unless the file says otherwise."""
    file = tmp_path / "deniable.yaml"
    file.write_text(f'{sections}producer: {{deliver: "http://127.0.0.1:{new_port()}"}}\n{DEVICE}')
    loaded = load(file, environment={})
    check_destination(loaded, loaded.collections[0], tmp_path / "kept")
    assert f" {seconds} s " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.broker
def test_before_any_worker_it_is_said_that_nothing_can_be_compared(
    broker: str,
    topic_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pin_messages: PinMessages,
) -> None:
    made = Deployment(tmp_path, broker, topic_prefix)
    made.create_topics()
    loaded = load(tmp_path / "deniable.yaml", environment={})
    capsys.readouterr()
    check_destination(loaded, loaded.collection("carrier"), tmp_path)
    said = capsys.readouterr().err
    pin_messages({"no worker has started": lambda: said})


DEVICE = """collections:
  - {name: plan, mechanism: k-rr, size: 3, epsilon: 2, window_seconds: 60, grace_seconds: 30, budget: none}
"""


def test_messages_of_lines_that_wait_for_a_budget(pin_messages: PinMessages) -> None:
    why = "clients cannot be charged: budget store db:5432/a: away"
    pin_messages(
        {
            "lines of a file": lambda: uncharged_notice([why], "key"),
            "lines of a pipe": lambda: uncharged_notice([why], ""),
        }
    )
