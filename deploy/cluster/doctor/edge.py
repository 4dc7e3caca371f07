"""Examine the edge that a producer delivers to: the steps that take the place of Kafka's."""

from datetime import UTC
from email.utils import parsedate_to_datetime

from deniable.cluster.finding import Finding
from deniable.deploy.cluster.doctor.case import Case, NotUsedError, StepAnswer
from deniable.deploy.cluster.doctor.clock_skew import LIMIT_SECONDS
from deniable.deploy.cluster.edge_answers import ask_edge, collections_of
from deniable.producers.errors import DeliveryError
from deniable.producers.transport.edge.collection_list import edge_disagreements

READY_REMEDY = "wait, or look at the edge: reports are kept until it is ready"


def edge(case: Case, seconds: float) -> StepAnswer:
    """Connect, with TLS if the URL says so, and ask for the list of collections."""
    address = case.edge
    try:
        case.edge_answers = ask_edge(address, seconds)
        case.asked = case.clock()
        collections_of(address, case.edge_answers.listed)
    except DeliveryError as error:
        remedy = "see that the edge runs, and that this machine may reach it" if case.asked is None else ""
        return StepAnswer([Finding(str(error), remedy)])
    signed = "" if address.public_key is None else ", signed by edge_public_key"
    return StepAnswer([], f"{address.url} answers with its list of collections{signed}")


def edge_ready(case: Case, _seconds: float) -> StepAnswer:
    """Judge what /readyz said."""
    reasons = case.answers.reasons
    if reasons is None:
        raise NotUsedError("unknown: /readyz is not served there")
    return StepAnswer([Finding(f"the edge is not ready: {each}", READY_REMEDY) for each in reasons], "ready")


def edge_parameters(case: Case, _seconds: float) -> StepAnswer:
    """Compare each collection with the edge's list; one with other parameters is a finding."""
    listed = collections_of(case.edge, case.answers.listed)
    found = edge_disagreements(case.configuration.collections, listed)
    if not found:
        number = len(listed)
        taken = "1 collection" if number == 1 else f"{number} collections"
        return StepAnswer([], f"the edge takes {taken}, and this file agrees with it")
    return StepAnswer([Finding(each.what, each.remedy) for each in found.values()])


def edge_clock_skew(case: Case, _seconds: float) -> StepAnswer:
    """Compare this clock with the date of the edge's answer, exact to a second; over 60 s is a finding."""
    try:
        date = parsedate_to_datetime(case.answers.listed.headers.get("date", ""))
    except (TypeError, ValueError, IndexError, OverflowError):
        raise NotUsedError("unknown: the answer has no date") from None
    if case.asked is None:
        raise NotUsedError("unknown")
    ahead = case.asked - (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    if abs(ahead) <= LIMIT_SECONDS:
        return StepAnswer([], f"within {max(abs(ahead), 1):.0f} s of the edge's")
    which = "ahead of" if ahead > 0 else "behind"
    remedy = "set both by NTP: reports that seem late, or more than 300 s early, are not counted"
    return StepAnswer([Finding(f"this clock is {abs(ahead):.0f} s {which} the edge's", remedy)])
