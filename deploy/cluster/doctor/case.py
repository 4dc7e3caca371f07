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


class Capability(NamedTuple):
    """Whether the brokers can do one thing.

    Parameters
    ----------
    name : of the thing.
    answer : ok, cannot or unknown.
    what : what was seen; what it means that they cannot; or why it is unknown.
    remedy : if they cannot.
    """

    name: str
    answer: str
    what: str
    remedy: str = ""


class StepAnswer(NamedTuple):
    """A step's findings, the note to print if there are none, and what it learned of brokers.

    Capabilities are printed with their note, whatever was found.
    """

    findings: list[Finding]
    note: str = ""
    capabilities: tuple[Capability, ...] = ()


class Append(NamedTuple):
    """One record that a broker appended.

    Parameters
    ----------
    broker : its number, the leader of the record's partition.
    appended : by the broker's clock.
    asked, answered : by ours, before and after; all unix seconds.
    """

    broker: int
    appended: float
    asked: float
    answered: float

    @property
    def ahead(self) -> tuple[float, float]:
        """By how much the broker's clock is ahead of ours: at least, and at most."""
        return self.appended - self.answered, self.appended - self.asked


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

    Steps fill in the rest: usable addresses, advertised brokers and those that are away, the records that
    brokers appended, one each, and of a capability whether a trial showed it or its absence; or what an edge
    answered, and when.
    """

    configuration: Configuration
    role: Role
    clock: Callable[[], float]
    usable: list[Address] = field(default_factory=list)
    advertised: list[Address] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    appends: list[Append] = field(default_factory=list)
    proven: dict[str, bool] = field(default_factory=dict)
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
