"""The limit of open files of a worker: its connections grow with partitions and brokers."""

import resource
from contextlib import suppress

import structlog

BASE = 100  # of the page, the group and what is opened for a moment

_log = structlog.get_logger(__name__)


def needed_files(partitions: int, brokers: int) -> int:
    """Return how many files a worker needs that owns all partitions.

    For each partition its producer may be connected to each broker twice, since coordinators have connections
    of their own, and the reader of its counts to one.
    """
    return BASE + partitions * (2 * brokers + 1)


def allow_open_files(partitions: int, brokers: int) -> None:
    """Raise this process's limit as far as the system allows; warn if that is not enough.

    Parameters
    ----------
    partitions : of the deployment.
    brokers : of the cluster, >= 1.
    """
    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems allow less than the hard limit says
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = needed_files(partitions, brokers)
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        _log.warning(
            "too few open files are allowed for a worker that owns all partitions: raise the limit "
            "(LimitNOFILE in the systemd unit, ulimits nofile in Compose), or run more workers",
            needed=needed,
            allowed=allowed,
            partitions=partitions,
            brokers=brokers,
        )
