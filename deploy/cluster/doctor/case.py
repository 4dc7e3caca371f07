"""The subject of an examination, the results of its steps so far, and a step's answer."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.handshakes import Address
from deniable.cluster.connection.probe import address_of
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.roles import Role
from deniable.config.file import Configuration
from deniable.config.settings.edge_address import EdgeAddress
from deniable.deploy.cluster.edge_answers import EdgeAnswers


class StepAnswer(NamedTuple):
    """A step's findings, and the note to print if there are none."""

    findings: list[Finding]
    note: str = ""


class NotUsedError(Exception):
    """The step does not concern the role, or cannot be judged; the message says why."""


@dataclass
class Case:
    """One examination.

    Parameters
    ----------
    configuration : names Kafka and topics.
    role : whose needs are examined.
    clock : returns now, unix seconds.

    Steps fill in the rest: usable addresses, advertised brokers, and when Kafka appended a record and when we
    asked for it, both unix seconds; or what an edge answered, and when.
    """

    configuration: Configuration
    role: Role
    clock: Callable[[], float]
    usable: list[Address] = field(default_factory=list)
    advertised: list[Address] = field(default_factory=list)
    appended: tuple[float, float] | None = None
    edge_answers: EdgeAnswers | None = None
    asked: float | None = None

    @property
    def delivers_to_edge(self) -> bool:
        """Whether an edge is examined instead of Kafka."""
        return self.role is Role.PRODUCER and self.configuration.edge_address is not None

    @property
    def edge(self) -> EdgeAddress:
        """The edge; NotUsedError if there is none."""
        if (address := self.configuration.edge_address) is None:
            raise NotUsedError("reports go to Kafka")
        return address

    @property
    def answers(self) -> EdgeAnswers:
        """What the edge answered; NotUsedError if it was not asked."""
        if self.edge_answers is None:
            raise NotUsedError("the edge was not asked")
        return self.edge_answers

    @property
    def cluster(self) -> Cluster:
        """The brokers found usable so far; Kafka's clients lose time with any other."""
        servers = ",".join(address_of(*each) for each in self.usable)
        return replace(self.configuration.cluster, bootstrap_servers=servers)
