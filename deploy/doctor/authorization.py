"""Whether we may do what the role needs."""

from kafka import KafkaAdminClient

from deploy.doctor.case import Answer, Case, Finding
from deploy.permission_findings import lack, missing, suited
from deploy.permissions import permissions_of


def authorization(case: Case, _seconds: float) -> Answer:
    """Ask the broker what we may do; asking changes nothing."""
    cluster, topics = case.cluster, case.configuration.topics
    admin = KafkaAdminClient(**cluster.client_settings())
    try:
        lacks = missing(admin, topics, permissions_of(case.role, topics))
        other = suited(admin, topics, case.role) if lacks else None
    finally:
        admin.close()
    if not lacks:
        return Answer([], f"all that the role {case.role} needs")
    what, _, remedy = lack(cluster, lacks, case.role, other).partition(": ")
    return Answer([Finding(what, remedy)])
