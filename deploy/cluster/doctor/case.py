"""What is examined, what the steps so far have found, and what a step answers."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from deploy.cluster.connection.handshakes import Address
from deploy.cluster.connection.probe import address_of
from deploy.cluster.finding import Finding
from deploy.cluster.permissions.roles import Role
from deploy.config.file import Configuration
from producers.transport.cluster import Cluster


class StepAnswer(NamedTuple):
    """Of a step: what is wrong, and what to say when nothing is."""

    findings: list[Finding]
    note: str = ""


class NotUsedError(Exception):
    """The step does not concern the role, or has nothing to go by; the message says why."""


@dataclass
class Case:
    """One examination.

    Parameters
    ----------
    configuration : which Kafka, which topics.
    role : whose needs are looked at.
    clock : now, unix seconds.

    Steps fill in the rest: addresses that are usable, brokers that are advertised, and when Kafka appended a
    record, unix seconds, with when we asked for it.
    """

    configuration: Configuration
    role: Role
    clock: Callable[[], float]
    usable: list[Address] = field(default_factory=list)
    advertised: list[Address] = field(default_factory=list)
    appended: tuple[float, float] | None = None

    @property
    def cluster(self) -> Cluster:
        """The brokers that steps so far have found usable; Kafka's clients lose time with any other."""
        servers = ",".join(address_of(*each) for each in self.usable)
        return replace(self.configuration.cluster, bootstrap_servers=servers)
