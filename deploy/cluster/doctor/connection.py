"""Steps from an address to a login: name, TCP, TLS on both sides, authentication."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from cryptography import x509

from deniable.cluster.connection.causes import end_of_file
from deniable.cluster.connection.handshakes import Address, dial, greet, log_in
from deniable.cluster.connection.probe import address_of
from deniable.cluster.finding import Finding
from deniable.cluster.security import Security
from deniable.deploy.cluster.doctor.brokers import Unusable, findings_of, try_all
from deniable.deploy.cluster.doctor.case import Case, StepAnswer

SOON = timedelta(days=14)


def connection(case: Case, seconds: float) -> StepAnswer:
    """Resolve each name and connect by TCP."""
    cluster = case.configuration.cluster
    reached, unusable = try_all(cluster.addresses(), dial, seconds, cluster.security)
    case.usable, case.away = list(reached), _away(unusable)
    count = len(reached)
    note = f"{count} of {count + len(unusable)} addresses of kafka.bootstrap_servers accept connections"
    return StepAnswer(findings_of(unusable, others=bool(reached)), note)


def tls(case: Case, seconds: float) -> StepAnswer:
    """Do the TLS handshake with each broker that accepts connections; send a request that needs no login."""
    security = case.configuration.cluster.security
    greeted, unusable = try_all(
        case.usable, lambda host, port: greet(host, port, security), seconds, security
    )
    case.usable = list(greeted)
    found = findings_of(unusable, others=bool(greeted))
    if security is None:
        return StepAnswer(found, "not used on either side")
    now = datetime.fromtimestamp(case.clock(), UTC)
    for address, certificate in greeted.items():
        if certificate is not None:
            ends = x509.load_der_x509_certificate(certificate).not_valid_after_utc
            found += expiry(f"{address_of(*address)}: its certificate", ends, now)
    if security.certificate_file is not None and not unusable:
        own = end_of_file(security.certificate_file)
        if own is not None:
            found += expiry(f"certificate_file {security.certificate_file}", own, now)
    return StepAnswer(found, "certificates fit and do not expire soon")


def authentication(case: Case, seconds: float) -> StepAnswer:
    """Log in at each broker that answered, and ask for the cluster's brokers."""
    cluster = case.configuration.cluster
    let_in, unusable = try_all(case.usable, partial(log_in, cluster), seconds, cluster.security)
    case.usable = list(let_in)
    case.advertised = list(dict.fromkeys(each for brokers in let_in.values() for each in brokers))
    return StepAnswer(findings_of(unusable, others=bool(let_in)), _logged_in(cluster.security))


def _logged_in(security: Security | None) -> str:
    if security is not None and security.token_source is not None:
        return f"logged in with the token of {security.token_source}"
    identity = security and (security.username or security.certificate_file)
    return f"logged in as {identity}" if identity else "connected without authentication"


def advertised(case: Case, seconds: float) -> StepAnswer:
    """Log in at each advertised address, to which clients go whichever broker they asked first."""
    cluster = case.configuration.cluster

    async def enter(host: str, port: int) -> list[Address]:
        await greet(host, port, cluster.security)
        return await log_in(cluster, host, port)

    _let_in, unusable = try_all(case.advertised, enter, seconds, cluster.security)
    case.away = list(dict.fromkeys([*case.away, *_away(unusable)]))
    failed = [Unusable(address, cause._replace(remedy=_remedy(cause.remedy))) for address, cause in unusable]
    note = f"logged in at every advertised address ({len(case.advertised)})"
    return StepAnswer(findings_of(failed, others=False), note)


def _away(unusable: Iterable[Unusable]) -> list[str]:
    return [address_of(*each.address) for each in unusable if not each.cause.is_answer]


def _remedy(remedy: str) -> str:
    return f"{remedy}; brokers advertise this address (advertised.listeners), so every client must reach it"


def expiry(whose: str, ends: datetime, now: datetime) -> list[Finding]:
    """Return a warning if a certificate expires within 14 days."""
    left = ends - now
    if left >= SOON:
        return []
    hours = left.seconds // 3600
    when = f"in {_number(left.days, 'day')}" if left.days else f"in {_number(hours, 'hour')}"
    if not left.days and not hours:
        when = "in less than an hour"
    return [Finding(f"{whose} expires on {ends:%Y-%m-%d}, {when}", "renew it", is_warning=True)]


def _number(count: int, unit: str) -> str:
    return f"{count} {unit}{'s' * (count != 1)}"
