"""What an edge's answer to an upload means for its pack. Pure.

Rule 1: a pack is given up only by an answer in the edge's own words. A proxy or a portal may answer anything
with any status, and then the pack is kept.
Rule 2: nothing of an answer is shown or counted but its status and known reasons: its bytes are foreign.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from deniable.producers.errors import DeliveryError, HopelessError
from deniable.producers.metrics.definitions import OTHER_REASON
from deniable.protocol.wire import GROUP_REASONS

LONGEST_PAUSE_SECONDS = 600.0
MOST_DIGITS = 9
REMEDY = "see that producer.deliver is the edge's final address"


@dataclass(frozen=True)
class HttpAnswer:
    """What a server answered.

    Parameters
    ----------
    status : of HTTP.
    headers : by name in lower case.
    body : its first bytes, see `EdgeConnection`.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Taken:
    """The edge has the pack."""


@dataclass(frozen=True)
class Rejected:
    """The edge will never take the pack.

    Parameters
    ----------
    reason : one of GROUP_REASONS, or OTHER_REASON.
    """

    reason: str


@dataclass(frozen=True)
class TooLarge:
    """The edge, or a proxy in front of it, takes no body of this size."""


@dataclass(frozen=True)
class Later:
    """The pack must be sent again.

    Parameters
    ----------
    why : for people; a HopelessError if waiting will not help.
    seconds : that the server asked to wait, in [0, LONGEST_PAUSE_SECONDS].
    """

    why: DeliveryError
    seconds: float = 0.0


Verdict = Taken | Rejected | TooLarge | Later


def verdict_of(answer: HttpAnswer, url: str, unix: Callable[[], float]) -> Verdict:
    """Return what becomes of a pack.

    Parameters
    ----------
    answer : to its upload of one group.
    url : of the edge, for messages.
    unix : returns now, unix seconds; called if Retry-After is a date.
    """
    status = answer.status
    if status == 204:
        return Taken()
    if status in (200, 400, 409) and (reason := _reason(answer)):
        return Rejected(reason)
    if status == 413:
        return TooLarge()
    return Later(unexpected(status, url), pause_seconds(answer, unix))


def unexpected(status: int, url: str) -> DeliveryError:
    """Return the error for a status that is no answer in the edge's words."""
    if 300 <= status < 400:
        return HopelessError(f"{url} answers with a redirect ({status}), which is not followed: {REMEDY}")
    if status == 429:
        return DeliveryError(
            f"the edge at {url} takes no more uploads from this network for now (429): raise "
            "uploads_per_minute of its section edge, or pack_reports here"
        )
    if status == 503:
        return DeliveryError(f"the edge at {url} takes no uploads for now (503): see its /readyz")
    if status == 408 or status >= 500:
        return DeliveryError(f"the edge at {url} fails ({status}): see its log")
    return HopelessError(f"{url} does not answer as an edge does ({status}): {REMEDY}")


def pause_seconds(answer: HttpAnswer, unix: Callable[[], float]) -> float:
    """Return the seconds of Retry-After, in [0, LONGEST_PAUSE_SECONDS]; 0 if it says none."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:MOST_DIGITS]), LONGEST_PAUSE_SECONDS)
    try:
        until = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return 0.0
    return min(max(0.0, until - unix()), LONGEST_PAUSE_SECONDS)


def _reason(answer: HttpAnswer) -> str | None:
    """Return why the only group was rejected; None if the body does not say so in the edge's words."""
    content = _json(answer.body)
    if not isinstance(content, dict):
        return None
    rejected = content.get("rejected")
    if isinstance(rejected, list):
        for each in rejected:
            if isinstance(each, list) and len(each) == 2 and each[0] == 0:
                return each[1] if each[1] in GROUP_REASONS else OTHER_REASON
    if answer.status == 409 and isinstance(content.get("error"), str):
        return "unknown_collection"
    if answer.status == 400 and isinstance(content.get("error"), str) and rejected is None:
        return OTHER_REASON  # it cannot decode the upload, and never will
    return None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
