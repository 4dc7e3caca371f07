"""Find topics whose number of partitions does not fit, also to what `state` says of the log."""

from collections.abc import Mapping

from kafka import KafkaAdminClient

from deniable.cluster.cluster import Cluster
from deniable.cluster.finding import Finding
from deniable.cluster.topics.findings import number_remedy, numbers_of, visible_findings
from deniable.cluster.topics.plan import plan
from deniable.deploy.cluster.topics import log_identity
from deniable.protocol.topic_names import Topics
from deniable.protocol.words import number_of


def unfit_topics(admin: KafkaAdminClient, cluster: Cluster, topics: Topics) -> list[Finding]:
    """Find absent and unfit topics; KafkaError if the broker does not let us see all of them."""
    numbers = numbers_of(admin, topics)
    unfit = number_findings(admin, cluster, topics, numbers)
    return unfit + visible_findings(admin, topics)


def number_findings(
    admin: KafkaAdminClient, cluster: Cluster, topics: Topics, numbers: Mapping[str, int]
) -> list[Finding]:
    """Find topics whose number of partitions differs from the deployment's.

    If `state` says that its ledgers count another log, or fewer partitions of this one, that is the only
    finding: the other numbers are right, whatever the collection file says. `collections` may have any.
    """
    names = [topic.name for topic in plan(topics) if topic.name != topics.collections]
    unfit = [name for name in names if numbers.get(name, topics.partitions) != topics.partitions]
    if not unfit:
        return []
    log = log_identity.log_of(admin, topics) if topics.reports in numbers else None
    notes = log_identity.notes(cluster, topics, numbers.get(topics.state, 0), log)
    if log is not None and (found := log_identity.log_findings(topics, log, notes)):
        return found
    kept = {topics.reports, topics.uploads, *([topics.state] if notes else ())}
    return [
        Finding(
            f"topic {name} has {number_of(numbers[name], 'partition')}, not {topics.partitions}, and the "
            f"number must never change",
            number_remedy({each: numbers[each] for each in names if each in numbers}, is_kept=name in kept),
        )
        for name in unfit
    ]
