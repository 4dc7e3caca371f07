"""Build the deployment that workers, replay and maintenance use, from the collection file and the broker."""

from functools import partial
from math import isinf

import numpy as np

from deniable.aggregator.deployment import ClientLimits, Deployment
from deniable.config.file import Configuration
from deniable.config.sections import RelaySection
from deniable.config.settings.allowance import UNLIMITED, Allowance
from deniable.deploy.cluster.topics import setup as topic_setup

UNSPENT = np.zeros(1, np.int64)


def deployment_of(configuration: Configuration) -> Deployment:
    """Check the topics; return brokers, topics, the log's identity and collections.

    Raises
    ------
    TopicSetupError if the topics cannot be used.
    """
    cluster, topics = configuration.cluster, configuration.topics
    log = topic_setup.require(cluster, topics)
    limits = {allowance.collection.name: limits_of(allowance) for allowance in configuration.allowances}
    return Deployment(
        cluster,
        topics,
        log,
        configuration.by_fingerprint(),
        configuration.revision,
        limits,
        configuration.kafka.checkpoint_seconds,
        (configuration.relay or RelaySection()).wait_seconds if configuration.takes_uploads else 0,
    )


def limits_of(allowance: Allowance) -> ClientLimits:
    """Turn an allowance into the limits that the page shows; reports per period are computed on demand."""
    budget, free = allowance.budget, allowance.epsilon_inf("any")
    return ClientLimits(
        per_window=allowance.reports_per_window,
        budget=None if budget is None else (budget.epsilon, budget.delta, budget.period_seconds),
        per_period=partial(_reports_of_a_period, allowance),
        changes=allowance.changes,
        values=allowance.values,
        any_epsilon=None if isinf(free) else free,
    )


def _reports_of_a_period(allowance: Allowance) -> int | None:
    (reports,) = allowance.limits(UNSPENT).tolist()
    return None if reports == UNLIMITED else reports
