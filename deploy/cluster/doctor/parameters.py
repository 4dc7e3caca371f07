"""Compare the collection file with what the workers count."""

from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import with_article
from deniable.cluster.permissions.roles import Role
from deniable.cluster.reading.publication_reader import UnreadableError
from deniable.deploy.cluster.doctor.case import Case, NotUsedError, StepAnswer
from deniable.deploy.cluster.topics.published import compared
from deniable.protocol.words import number_of

WORKER_REMEDY = (
    "Use the file of the running workers, or, if this one is newer, raise its revision and restart them"
)


def parameters(case: Case, _seconds: float) -> StepAnswer:
    """Compare each collection; one with other parameters is a finding."""
    if case.role is Role.READER:
        raise NotUsedError(f"a {case.role} sends and counts nothing")
    if case.role in (Role.EDGE, Role.RELAY):
        raise NotUsedError(f"{with_article(case.role)} may not read what workers publish")
    configuration = case.configuration
    try:
        found, published = compared(case.cluster, configuration.topics, configuration.collections)
    except UnreadableError as error:
        raise NotUsedError(f"unknown: {error}") from None
    if not published:
        raise NotUsedError("unknown: no worker has published what it counts yet")
    if not found:
        counted = number_of(len(published), "collection")
        return StepAnswer([], f"the workers count {counted}, and this file agrees with them")
    is_worker = case.role is Role.AGGREGATOR
    return StepAnswer([Finding(each.what, WORKER_REMEDY if is_worker else each.remedy) for each in found])
