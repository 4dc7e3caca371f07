"""Whether both sides speak TLS, or neither does; and how long the certificates last."""

from datetime import UTC, datetime, timedelta

from cryptography import x509

from deploy.connection_causes import end_of_file
from deploy.doctor.case import Answer, Case, Finding
from deploy.doctor.stage import findings_of, try_all
from deploy.handshakes import greet
from deploy.probe import address_of

SOON = timedelta(days=14)


def tls(case: Case, seconds: float) -> Answer:
    """Shake hands with each broker that takes connections, and ask what everybody may ask."""
    security = case.configuration.cluster.security
    greeted, unusable = try_all(
        case.usable, lambda host, port: greet(host, port, security), seconds, security
    )
    case.usable = list(greeted)
    found = findings_of(unusable, others=bool(greeted))
    if security is None:
        return Answer(found, "none on either side")
    now = datetime.fromtimestamp(case.clock(), UTC)
    for address, certificate in greeted.items():
        if certificate is not None:
            ends = x509.load_der_x509_certificate(certificate).not_valid_after_utc
            found += expiry(f"{address_of(*address)}: its certificate", ends, now)
    if security.certificate_file is not None and not unusable:
        own = end_of_file(security.certificate_file)
        if own is not None:
            found += expiry(f"certificate_file {security.certificate_file}", own, now)
    return Answer(found, "certificates fit, and last")


def expiry(whose: str, ends: datetime, now: datetime) -> list[Finding]:
    """A warning if a certificate ends within 14 days."""
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
