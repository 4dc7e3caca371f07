"""The oldest and the newest release of Kafka in docs/kafka.md: doctor, the whole path, and the demo."""

import subprocess
import sys
from pathlib import Path

import pytest

from deniable.deploy.broker.broker import Broker
from tests.support.brokers.releases import kafka_of
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker
from tests.support.brokers.secured.deployments import SecuredDeployment, by_password
from tests.support.brokers.secured.whole_path import ROLES, count_reports

pytestmark = [pytest.mark.broker, pytest.mark.nightly, pytest.mark.usefixtures("kafka_jars")]
DEMO_SECONDS = 600


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_whole_path_on_another_release(release: str, tmp_path: Path, topic_prefix: str) -> None:
    with kafka_of(release, tmp_path):
        with SecuredBroker() as secured:
            _with_least_privilege(secured, tmp_path, topic_prefix)
        with Broker() as plain:
            servers = ["--bootstrap-servers", plain.bootstrap_servers]
            command = [sys.executable, "-m", "deniable", "demo", "--once", *servers]
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=DEMO_SECONDS, cwd=tmp_path
            )
            assert ended.returncode == 0, ended.stdout + ended.stderr


def _with_least_privilege(secured: SecuredBroker, folder: Path, prefix: str) -> None:
    def of(user: str) -> SecuredDeployment:
        (folder / user).mkdir()
        return by_password(secured, folder / user, prefix, user)

    admin = of(ADMIN)
    admin.create_topics()
    by_role = {}
    for role in ROLES:
        secured.add_user(user := f"{prefix}{role}")
        by_role[role] = of(user)
    printed = count_reports(secured, by_role)
    assert "fencing         ok: " in printed
    assert "compaction      unknown: not permitted to ask" in printed
    whole = admin.run("doctor").stdout
    assert not [word for word in ("failed", "cannot", "not permitted") if word in whole], whole
