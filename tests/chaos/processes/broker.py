"""A broker of the suite's own: its cleaner never rests, and permissions can be withdrawn."""

from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
)

from deploy.broker.broker import Broker

#: Whoever is named by no rule may do all; a rule on one topic takes its permission from everyone else there.
SETTINGS = """
log.cleaner.backoff.ms=500
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
ANYBODY = "User:*"


class ChaosBroker(Broker):
    """The embedded broker with more settings; kill, pause and resume as there."""

    def _configure(self, folder: Path, port: int) -> None:
        super()._configure(folder, port)
        with (folder / "server.properties").open("a") as settings:
            settings.write(SETTINGS)

    def forbid_writing(self, topic: str) -> None:
        """Withdraw the permission to write to a topic; to read it stays allowed."""
        rules = [
            _rule(topic, ACLOperation.WRITE, ACLPermissionType.DENY),
            _rule(topic, ACLOperation.ALL, ACLPermissionType.ALLOW),
        ]
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            failed = admin.create_acls(rules)["failed"]
        if failed:
            raise RuntimeError(f"the permission cannot be withdrawn: {failed}")

    def allow_writing(self, topic: str) -> None:
        """Give it back."""
        both = ACLFilter(
            None, None, ACLOperation.ANY, ACLPermissionType.ANY, ResourcePattern(ResourceType.TOPIC, topic)
        )
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.delete_acls([both])

    def limit_records(self, topic: str, most_bytes: int) -> None:
        """Refuse larger batches from now on, as a topic that somebody else has set up would."""
        limit = ConfigResource(
            ConfigResourceType.TOPIC, topic, configs={"max.message.bytes": str(most_bytes)}
        )
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.alter_configs([limit])


def _rule(topic: str, operation: ACLOperation, permission: ACLPermissionType) -> ACL:
    return ACL(ANYBODY, "*", operation, permission, ResourcePattern(ResourceType.TOPIC, topic))
