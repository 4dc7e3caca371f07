"""The principals of one deployment on the secured broker, each with its own folder and file."""

from pathlib import Path

from kafka import KafkaAdminClient

from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.permissions import acls as acl_setup
from deniable.deploy.cluster.topics.setup import create
from deniable.protocol.topic_names import Topics
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker
from tests.support.brokers.secured.deployments import SecuredDeployment, by_certificate, by_password


class Principals:
    """Users of all roles, an administrator, and one without permissions; ACLs are created elsewhere."""

    def __init__(self, broker: SecuredBroker, folder: Path, prefix: str) -> None:
        self.broker = broker
        self.folder = folder
        self.prefix = prefix
        self.admin = self._as(ADMIN)
        self.by_role = {role: self.add(role) for role in Role}
        self.nobody = self.add("nobody")

    def add(self, name: str) -> SecuredDeployment:
        """Add a user with this name after the prefix."""
        user = f"{self.prefix}{name}"
        self.broker.add_user(user)
        return self._as(user)

    def by_certificate(self, role: Role) -> SecuredDeployment:
        """Return a role's user at the listener that identifies clients by certificate."""
        user = self.by_role[role].user
        return by_certificate(
            self.broker, self._folder(f"{user}-certified"), self.prefix, self.broker.client_certificate(user)
        )

    @property
    def topics(self) -> Topics:
        """Names of the topics."""
        return self.admin.topics

    @property
    def names(self) -> dict[Role, list[str]]:
        """Users by role."""
        return {role: [each.user] for role, each in self.by_role.items()}

    def set_up(self) -> None:
        """Create topics and permissions like `topics create --acls`."""
        create(self.admin.cluster, self.topics, 1)
        with KafkaAdminClient(**self.broker.admin_settings()) as admin:
            acl_setup.allow(admin, self.topics, self.names)

    def _as(self, user: str) -> SecuredDeployment:
        return by_password(self.broker, self._folder(user), self.prefix, user)

    def _folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        return folder
