"""Reads the estimates that a worker keeps, over HTTP: its newest 60 windows of each collection, or 8 MiB."""

import re
import ssl
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import msgspec

from deniable.analysis.arguments import check_type
from deniable.analysis.errors import AnalysisError, WrongArgumentError
from deniable.analysis.sources.newest import NewestEstimates
from deniable.analysis.sources.topic import EstimateFilter

SECONDS = 30
MOST_BYTES = 1000  # of an answer that is an error
ALLOWED = "an address such as http://127.0.0.1:8321"


class _Refusal(msgspec.Struct):
    """The answer of a worker that refuses."""

    error: str


class _KeptEstimates(msgspec.Struct):
    """The answer of `/api/history/COLLECTION`."""

    estimates: list[msgspec.Raw]


def read_worker(address: str, wanted: EstimateFilter) -> NewestEstimates:
    """Read what is wanted of a worker's estimates. Of one in parts, the worker keeps the first.

    Parameters
    ----------
    address : of its page, such as http://127.0.0.1:8321.
    wanted : collection and period.

    Raises
    ------
    AnalysisError if the address is none, nobody answers, or the worker does not know the collection.
    """
    check_address(address)
    url = f"{address.rstrip('/')}/api/history/{quote(wanted.name, safe='')}"
    try:
        with urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - http or https
            body = answer.read()
    except HTTPError as error:
        with error:
            said = _sentence_of(error.read(MOST_BYTES))
        raise AnalysisError(f"the worker at {address} answered {error.code} to {url}: {said}") from error
    except (OSError, HTTPException) as error:  # URLError is an OSError
        raise AnalysisError(f"no worker answers at {address}: {_cause_of(error)}") from error
    try:
        kept = msgspec.json.decode(body, type=_KeptEstimates)
    except msgspec.DecodeError as error:
        raise AnalysisError(f"{url} did not answer with estimates: is {address} a worker's page?") from error
    newest = NewestEstimates(needs_all_parts=False)
    for each in kept.estimates:
        value = wanted.wanted(f"{wanted.name}/".encode(), bytes(each))
        if value is not None:
            newest.add(value)
    return newest


def check_address(address: str) -> None:
    """Raise WrongArgumentError unless it is one of HTTP, with a host and a valid port."""
    check_type("worker", address, str, ALLOWED)
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if "@" in address:
        raise WrongArgumentError("worker must be an address without user and password")
    if not is_address or re.search(r"[^!-~]|[?#]", address):
        raise WrongArgumentError(f"worker must be {ALLOWED}, got {address}")


def _sentence_of(body: bytes) -> str:
    """Return what the worker says, or the text of another server in one line."""
    try:
        return msgspec.json.decode(body, type=_Refusal).error
    except msgspec.DecodeError:
        return " ".join(body.decode(errors="replace").split())


def _cause_of(error: OSError | HTTPException) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted, {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return "it does not speak TLS; is the address one of http://"
    if isinstance(cause, HTTPException):
        return "it does not speak HTTP; is the address one of https://"
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
