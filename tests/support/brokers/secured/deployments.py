"""A deployment on the secured broker; its collection file has the security of its clients."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deniable.cluster.cluster import Cluster
from deniable.config.file import load
from deniable.protocol.topic_names import Topics
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker
from tests.support.brokers.secured.certificates import Issued
from tests.support.deployments import Deployment


@dataclass(frozen=True)
class SecuredDeployment(Deployment):
    """A folder with a collection file and the files that its section `kafka.security` names.

    Parameters
    ----------
    user : the principal of its clients.
    security : that section.
    """

    user: str = ADMIN
    security: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        file = self.folder / "deniable.yaml"
        text = file.read_text(encoding="utf-8").replace(
            "collections:", "edge: {}\nrelay: {delivery_seconds: 1}\ncollections:", 1
        )
        file.write_text(text.replace("allow_plaintext: true", f"security: {json.dumps(self.security)}"))

    @property
    def cluster(self) -> Cluster:
        """Return how its commands connect."""
        return load(self.folder / "deniable.yaml", environment={}).cluster

    @property
    def topics(self) -> Topics:
        """Names of its topics."""
        return load(self.folder / "deniable.yaml", environment={}).topics

    def create_topics(self) -> None:
        """Run a command like a user."""
        created = self.run("topics", "create")
        assert created.returncode == 0, created.stderr

    def write(self, name: str, content: bytes) -> None:
        """Replace a file atomically: no reader sees half of it."""
        new = self.folder / f"{name}.new"
        new.write_bytes(content)
        new.replace(self.folder / name)

    def use_certificate(self, issued: Issued) -> None:
        """Use this certificate from now on."""
        self.write("client.key", issued.key_file.read_bytes())
        self.write("client.crt", issued.certificate_file.read_bytes())


def by_password(
    broker: SecuredBroker, folder: Path, prefix: str, user: str = ADMIN, mechanism: str | None = None
) -> SecuredDeployment:
    """Return a deployment of a user with the password that the broker has; default: the superuser, SCRAM."""
    shutil.copy(broker.authority.certificate_file, folder / "ca.crt")
    (folder / "password").write_text(f"{broker.sasl_settings(user)['sasl_plain_password']}\n")
    security = {"ca_file": "ca.crt", "username": user, "password_file": "password"}
    if mechanism is not None:
        security["mechanism"] = mechanism
    servers = broker.plain_servers if mechanism == "PLAIN" else broker.sasl_servers
    return SecuredDeployment(folder, servers, prefix, user, security)


def by_certificate(
    broker: SecuredBroker, folder: Path, prefix: str, issued: Issued | None = None
) -> SecuredDeployment:
    """Return a deployment of a certificate's user; None: a new certificate of the superuser."""
    shutil.copy(broker.authority.certificate_file, folder / "ca.crt")
    security = {"ca_file": "ca.crt", "certificate_file": "client.crt", "key_file": "client.key"}
    issued = issued or broker.client_certificate(ADMIN)
    deployment = SecuredDeployment(folder, broker.ssl_servers, prefix, issued.common_name, security)
    deployment.use_certificate(issued)
    return deployment
