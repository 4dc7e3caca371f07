"""Try one stage of connecting with several brokers at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from aiokafka import errors as of_aiokafka
from kafka import errors as of_kafka_python

from deniable.cluster.connection.causes import Cause, cause_of
from deniable.cluster.connection.handshakes import Address
from deniable.cluster.connection.probe import address_of
from deniable.cluster.finding import Finding
from deniable.cluster.security import Security

T = TypeVar("T")
STARTING = "check whether the server is stopped, overloaded or just starting"


class Unusable(NamedTuple):
    """A broker for which a stage failed."""

    address: Address
    cause: Cause


def try_all(
    addresses: Iterable[Address],
    act: Callable[[str, int], Awaitable[T]],
    seconds: float,
    security: Security | None,
) -> tuple[dict[Address, T], list[Unusable]]:
    """Try all addresses at once, for at most `seconds`; return results and failures."""
    asked = list(dict.fromkeys(addresses))

    async def one(host: str, port: int) -> T:
        async with asyncio.timeout(seconds):
            return await act(host, port)

    async def all_at_once() -> list[T | BaseException]:
        came = await asyncio.gather(*(one(*each) for each in asked), return_exceptions=True)
        await asyncio.sleep(0)  # one iteration of the loop closes aborted connections
        return came

    came: dict[Address, T] = {}
    unusable = []
    for address, outcome in zip(asked, asyncio.run(all_at_once()), strict=True):
        if isinstance(outcome, BaseException):
            unusable.append(Unusable(address, cause_of(outcome, seconds, security)))
        else:
            came[address] = outcome
    return came, unusable


def findings_of(unusable: Iterable[Unusable], *, others: bool) -> list[Finding]:
    """Return findings; a broker that does not answer while others do is a warning."""
    return [
        Finding(
            f"{address_of(*each.address)}: {each.cause.what}",
            each.cause.remedy,
            is_warning=others and not each.cause.is_answer,
        )
        for each in unusable
    ]


def outage_finding(error: Exception, away: Sequence[str]) -> Finding | None:
    """Explain an error with which a client's request to the brokers ends in an outage; None for others.

    Parameters
    ----------
    error : of either client.
    away : addresses at which no broker answered before.
    """
    match error:
        case TimeoutError() if not away:
            return None  # `cause_of` says how long it took
        case of_aiokafka.UnknownTopicOrPartitionError() | of_kafka_python.UnknownTopicOrPartitionError():
            return None
        case TimeoutError() | of_aiokafka.KafkaTimeoutError() | of_kafka_python.KafkaTimeoutError():
            what = "no answer in time"
        case of_aiokafka.KafkaError(retriable=True) | of_kafka_python.KafkaError(retriable=True):
            what = "a broker that this needs does not answer"
        case _:
            return None
    if away:
        which, them = ("brokers are", "them") if len(away) > 1 else ("a broker is", "it")
        return Finding(f"{what} while {which} away: {', '.join(away)}", f"start {them}; see the steps above")
    return Finding(what, STARTING)
