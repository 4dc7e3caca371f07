"""The suite's broker: it compacts continuously, and permissions can be withdrawn."""

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

from deniable.deploy.broker.broker import Broker

#: Principals without a rule may do everything; a rule on a topic denies it to all others.
SETTINGS = """
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=4194304
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
ANYBODY = "User:*"


class ChaosBroker(Broker):
    """The embedded broker with more settings; can be killed, paused and resumed."""

    def _configure(self, folder: Path, port: int) -> None:
        super()._configure(folder, port)
        with (folder / "server.properties").open("a") as settings:
            settings.write(SETTINGS)

    def forbid_writing(self, topic: str) -> None:
        """Withdraw the permission to write to a topic; reading stays allowed."""
        rules = [
            _rule(topic, ACLOperation.WRITE, ACLPermissionType.DENY),
            _rule(topic, ACLOperation.ALL, ACLPermissionType.ALLOW),
        ]
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            failed = admin.create_acls(rules)["failed"]
        if failed:
            raise RuntimeError(f"the permission cannot be withdrawn: {failed}")

    def allow_writing(self, topic: str) -> None:
        """Restore the permission."""
        both = ACLFilter(
            None, None, ACLOperation.ANY, ACLPermissionType.ANY, ResourcePattern(ResourceType.TOPIC, topic)
        )
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.delete_acls([both])

    def limit_records(self, topic: str, most_bytes: int) -> None:
        """Refuse larger batches from now on, like a topic with other settings."""
        limit = ConfigResource(
            ConfigResourceType.TOPIC, topic, configs={"max.message.bytes": str(most_bytes)}
        )
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.alter_configs([limit])


def _rule(topic: str, operation: ACLOperation, permission: ACLPermissionType) -> ACL:
    return ACL(ANYBODY, "*", operation, permission, ResourcePattern(ResourceType.TOPIC, topic))
