"""Whether brokers let us in, those of kafka.bootstrap_servers and those that they advertise."""

from functools import partial

from deploy.doctor.case import Answer, Case
from deploy.doctor.stage import Unusable, findings_of, try_all
from deploy.handshakes import Address, greet, log_in


def authentication(case: Case, seconds: float) -> Answer:
    """Log in at each broker that was greeted, and ask which others there are."""
    cluster = case.configuration.cluster
    let_in, unusable = try_all(case.usable, partial(log_in, cluster), seconds, cluster.security)
    case.usable = list(let_in)
    case.advertised = list(dict.fromkeys(each for brokers in let_in.values() for each in brokers))
    as_whom = "anybody"
    if cluster.security is not None:
        as_whom = cluster.security.username or f"{cluster.security.certificate_file or 'anybody'}"
    return Answer(findings_of(unusable, others=bool(let_in)), f"let in as {as_whom}")


def advertised(case: Case, seconds: float) -> Answer:
    """Log in at each advertised address: there clients go, whichever broker they asked first."""
    cluster = case.configuration.cluster

    async def enter(host: str, port: int) -> list[Address]:
        await greet(host, port, cluster.security)
        return await log_in(cluster, host, port)

    _let_in, unusable = try_all(case.advertised, enter, seconds, cluster.security)
    told = [Unusable(address, cause._replace(remedy=_remedy(cause.remedy))) for address, cause in unusable]
    note = f"all {len(case.advertised)} that the cluster advertises let us in"
    return Answer(findings_of(told, others=False), note)


def _remedy(remedy: str) -> str:
    return f"{remedy}; brokers tell this address (advertised.listeners), so it must hold for every client"
