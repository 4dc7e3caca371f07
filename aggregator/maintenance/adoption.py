"""What a collection file changes in the ledgers, found out before a worker opens them with it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.terms import Terms
from deniable.aggregator.ledger.terms_update import changed_terms
from deniable.aggregator.maintenance.ledger_reader import ledger_rows, progress_in, terms_in
from deniable.estimators.collection import Collection


class LedgerTerms(NamedTuple):
    """The part of a ledger that decides whether it adopts a file.

    Parameters
    ----------
    revision : of the file that it was last opened with, 0 for a new ledger.
    terms : by fingerprint.
    position : next offset that it counts.
    watermark_ms : the highest append time that it counted, unix milliseconds.
    """

    revision: int
    terms: Mapping[int, Terms]
    position: int = 0
    watermark_ms: int = 0


class Adoption(NamedTuple):
    """What adopting a file means for its collections, by name, each list in alphabetical order.

    Parameters
    ----------
    revision : the least one with which workers accept the file, at least the file's.
    redefined : are counted with another definition, which must be retired.
    removed : are counted, and the file lacks them: they must be retired.
    added : are new beside collections that are counted.
    changed : get other terms, such as another grace, for later windows.
    retired : are in the file with a definition that is retired, which never counts again.
    """

    revision: int
    redefined: list[str]
    removed: list[str]
    added: list[str]
    changed: list[str]
    retired: list[str]


async def adoption(deployment: Deployment) -> Adoption:
    """Read all ledgers and compare; LedgerRefusedError, RowError or KafkaError if one cannot be read."""
    ledgers = []
    for partition in range(deployment.topics.partitions):
        found = await ledger_rows(deployment, partition)
        counted, progress = found.get(row_keys.SingleKey.REVISION), progress_in(found)
        revision = 0 if counted is None else row_values.decode_revision(counted)
        ledgers.append(LedgerTerms(revision, terms_in(found), progress.position, progress.watermark_ms))
    return adoption_of(ledgers, deployment.collections, deployment.revision)


async def check_adoption(deployment: Deployment) -> None:
    """Check that all ledgers accept a file, as when a worker opens them with it; nothing is written.

    Raises
    ------
    TermsError, LedgerRefusedError or RowError if a worker would end; KafkaError.
    """
    for partition in range(deployment.topics.partitions):
        found = await ledger_rows(deployment, partition)
        ledger = Ledger(partition, deployment.topics.partitions)
        ledger.restore(
            row for row in found.items() if isinstance(row[0], row_keys.SingleKey | row_keys.TermsKey)
        )
        ledger.agree(deployment.collections, deployment.revision)


def adoption_of(
    ledgers: Iterable[LedgerTerms], collections: Mapping[int, Collection], revision: int
) -> Adoption:
    """Compare ledgers with a file.

    Parameters
    ----------
    ledgers : of all partitions.
    collections, revision : of the file; collections by fingerprint.
    """
    names = {each.name for each in collections.values()}
    ended, added, changed, retired, latest = set[str](), set[str](), set[str](), set[str](), 0
    for ledger in ledgers:
        latest = max(latest, ledger.revision)
        open_terms = {each: terms for each, terms in ledger.terms.items() if terms.until is None}
        ended |= {terms.name for each, terms in open_terms.items() if each not in collections}
        retired |= {ledger.terms[each].name for each in collections.keys() & ledger.terms - open_terms.keys()}
        kept = {each: terms for each, terms in ledger.terms.items() if each in collections}
        for each, terms in changed_terms(kept, collections, ledger.position, ledger.watermark_ms).items():
            (changed if each in kept else added).add(terms.name)
    must_rise = bool(ended or added or changed)
    is_first = not latest
    return Adoption(
        revision=max(revision, latest + must_rise),
        redefined=sorted(ended & names),
        removed=sorted(ended - names),
        added=[] if is_first else sorted(added - ended),
        changed=sorted(changed - ended),
        retired=sorted(retired),
    )
