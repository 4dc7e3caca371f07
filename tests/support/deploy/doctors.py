"""Deployments on the secured broker, and the doctor run on them as the command runs it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from kafka import KafkaAdminClient

from deniable.cluster.cluster import Cluster
from deniable.cluster.permissions.roles import Permission, Role, permissions_of
from deniable.cluster.security import Security
from deniable.config.file import Configuration, load
from deniable.deploy.cluster.doctor import examination
from deniable.deploy.cluster.doctor.case import Case
from deniable.deploy.cluster.doctor.command import lines_of
from deniable.deploy.cluster.doctor.examination import Result, examine
from deniable.deploy.cluster.topics import setup as topic_setup
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker

PATIENT_SECONDS = 120.0  # for a step, and for all: a busy machine must not look like a broker that is silent
FILE = """\
revision: 1
kafka: {{topic_prefix: "{prefix}", partitions: 2}}
relay: {{}}
collections:
  - {{name: carrier, mechanism: k-rr, values: [AA, B6], other: false, epsilon: 3.0, window_seconds: 60,
     grace_seconds: 30, budget: none}}
"""


@dataclass(frozen=True)
class Patient:
    """A prefix on the secured broker."""

    broker: SecuredBroker
    folder: Path
    prefix: str

    def configuration(self, security: Security | None, servers: str | None = None) -> Configuration:
        """Return the deployment with other security settings."""
        path = self.folder / "deniable.yaml"
        path.write_text(FILE.format(prefix=self.prefix), encoding="utf-8")
        cluster = Cluster(servers or self.broker.sasl_servers, security, allow_plaintext=True)
        return replace(load(path, environment={}), connection=cluster)

    def by_password(self, user: str, password: str | None = None) -> Security:
        """Return the security of a user; None: with the password that the broker has for it."""
        known = str(self.broker.sasl_settings(user, password)["sasl_plain_password"])
        return Security(ca_file=self.broker.authority.certificate_file, username=user, password=known)

    def as_admin(self) -> Configuration:
        """The cluster, connected as a superuser."""
        return self.configuration(self.by_password(ADMIN))

    def admin(self) -> KafkaAdminClient:
        """An admin client of a superuser."""
        return KafkaAdminClient(**self.broker.admin_settings())

    def create_topics(self) -> None:
        """Create the topics like `topics create`."""
        loaded = self.as_admin()
        topic_setup.create(loaded.cluster, loaded.topics, 1)

    def user(self, name: str, role: Role, *, but: Sequence[str] = ()) -> Configuration:
        """Create a user with all permissions of a role except the named ones."""
        planned = permissions_of(role, self.as_admin().topics)
        assert set(but) <= set(map(str, planned))
        user = f"{self.prefix}{name}"
        self.broker.add_user(user)
        self.allow(user, [each for each in planned if str(each) not in but])
        return self.configuration(self.by_password(user))

    def allow(self, user: str, permissions: Sequence[Permission]) -> None:
        """Give permissions to a user."""
        self.broker.allow_all(user, [(each.pattern, each.operation) for each in permissions])


def run(
    configuration: Configuration,
    role: Role = Role.AGGREGATOR,
    clock: Callable[[], float] = time.time,
    *,
    seconds: float | None = PATIENT_SECONDS,
) -> dict[str, Result]:
    """Run the doctor and print its results; return them by step.

    Parameters
    ----------
    seconds : limit of each step; None: the doctor's own.
    """
    steps = {name: getattr(examination, name) for name in ("STEPS", "UPLOAD_STEPS")}
    if seconds is not None:
        steps = {name: tuple(step._replace(seconds=seconds) for step in each) for name, each in steps.items()}
    results = {}
    with patch.multiple(examination, **steps):
        for result in examine(Case(configuration, role, clock), PATIENT_SECONDS):
            print(lines_of(result))  # noqa: T201 - to be read with pytest -s
            results[result.step] = result
    return results


def shown(results: dict[str, Result]) -> str:
    """Return failed steps with their findings, without warnings."""
    failed = [result for result in results.values() if result.status == "failed"]
    return "\n".join(
        f"{result.step}: {each.what}" for result in failed for each in result.findings if not each.is_warning
    )
