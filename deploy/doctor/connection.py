"""Whether the names of kafka.bootstrap_servers resolve, and something listens there."""

from deploy.doctor.case import Answer, Case
from deploy.doctor.stage import findings_of, try_all
from deploy.handshakes import dial


def connection(case: Case, seconds: float) -> Answer:
    """Resolve each name and connect by TCP."""
    cluster = case.configuration.cluster
    reached, unusable = try_all(cluster.addresses(), dial, seconds, cluster.security)
    case.usable = list(reached)
    count = len(reached)
    note = f"{count} of {count + len(unusable)} addresses of kafka.bootstrap_servers take connections"
    return Answer(findings_of(unusable, others=bool(reached)), note)
