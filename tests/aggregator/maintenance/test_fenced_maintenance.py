"""Commands that change ledgers while workers own them."""

import asyncio

import pytest
from aiokafka.errors import ProducerFenced

from deniable.aggregator.maintenance.ledger_changes import FENCED_TRIES, _retry_when_fenced


@pytest.mark.parametrize("fenced", [0, 1, FENCED_TRIES - 1])
def test_fenced_command_retries(fenced: int) -> None:
    failures = [ProducerFenced() for _ in range(fenced)]

    async def change() -> int:
        if failures:
            raise failures.pop()
        return 11

    assert asyncio.run(_retry_when_fenced(change)) == 11


def test_repeatedly_fenced_command_gives_up() -> None:
    async def change() -> int:
        raise ProducerFenced

    with pytest.raises(ProducerFenced):
        asyncio.run(_retry_when_fenced(change))
