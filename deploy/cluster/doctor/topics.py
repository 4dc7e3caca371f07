"""Check the role's permissions, the topics and their settings, and the content of `state`."""

from collections.abc import Callable

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from deniable.aggregator.ledger.row_values import RowError
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import lack_of_role, missing, with_article
from deniable.cluster.permissions.roles import Role, permissions_of, topics_of
from deniable.cluster.topics import findings as topic_findings
from deniable.cluster.topics.checks import of_uploads
from deniable.cluster.topics.replicas import replica_findings
from deniable.deploy.cluster.doctor.brokers import outage_finding
from deniable.deploy.cluster.doctor.case import Case, NotUsedError, StepAnswer
from deniable.deploy.cluster.topics import log_identity
from deniable.deploy.cluster.topics.number_findings import unfit_topics

Ask = Callable[[KafkaAdminClient, Case], list[Finding]]


def authorization(case: Case, _seconds: float) -> StepAnswer:
    """Ask the broker for our permissions; asking changes nothing."""
    cluster, topics = case.cluster, case.configuration.topics
    admin = KafkaAdminClient(**cluster.client_settings())
    try:
        lacks = missing(admin, topics, permissions_of(case.role, topics))
        found = [lack_of_role(admin, cluster, topics, case.role, lacks)] if lacks else []
    finally:
        admin.close()
    return StepAnswer(found, f"the role {case.role} has every permission that it needs")


def topics(case: Case, _seconds: float) -> StepAnswer:
    """Check like `topics check`, but only the topics that the role may see."""
    match case.role:
        case Role.AGGREGATOR:
            return StepAnswer(_asked(case, _all_topics), "all exist and fit")
        case Role.PRODUCER:
            return StepAnswer(_asked(case, _reports), "the topic of reports exists and fits")
        case Role.EDGE | Role.RELAY:
            return StepAnswer(_asked(case, _uploads), "the topics that it reads and writes exist and fit")
    return StepAnswer(_asked(case, _read_topics), "the topics to read exist and fit")


def replicas(case: Case, _seconds: float) -> StepAnswer:
    """Check that each partition of the role's topics can be written, and survives a broker."""
    return StepAnswer(_asked(case, _replicas), "all are in sync, and as many as brokers allow, up to three")


def state(case: Case, _seconds: float) -> StepAnswer:
    """Check that ledgers are set up, count this log and have missed none of it."""
    if case.role is not Role.AGGREGATOR:
        raise NotUsedError(f"{with_article(case.role)} has none")
    return StepAnswer(_asked(case, _ledgers), "ledgers count this log, and none of it was lost")


def _all_topics(admin: KafkaAdminClient, case: Case) -> list[Finding]:
    configuration = case.configuration
    names = configuration.topics
    limits = topic_findings.limits_exceeded(admin, names, configuration.collections)
    return unfit_topics(admin, case.cluster, names) + limits


def _reports(admin: KafkaAdminClient, case: Case) -> list[Finding]:
    return topic_findings.reports_findings(admin, case.configuration.topics)


def _uploads(admin: KafkaAdminClient, case: Case) -> list[Finding]:
    configuration = case.configuration
    return of_uploads(admin, configuration.topics, case.role, configuration.collections)


def _read_topics(admin: KafkaAdminClient, case: Case) -> list[Finding]:
    names = case.configuration.topics
    read = (names.estimates, names.windows)
    return [each for name in read for each in topic_findings.fit_findings(admin, names, name)]


def _replicas(admin: KafkaAdminClient, case: Case) -> list[Finding]:
    names = topics_of(case.role, case.configuration.topics)
    return replica_findings(admin, names, len(case.advertised))


def _ledgers(admin: KafkaAdminClient, case: Case) -> list[Finding]:
    return log_identity.findings(admin, case.cluster, case.configuration.topics)


def _asked(case: Case, ask: Ask) -> list[Finding]:
    admin = KafkaAdminClient(**case.cluster.client_settings())
    try:
        return ask(admin, case)
    except (KafkaError, RowError) as error:
        if outage_finding(error, case.away):
            raise
        return [Finding(f"{type(error).__name__}: {error}", "")]
    finally:
        admin.close()
