"""Reads the estimates that a worker keeps, over HTTP: its newest 60 windows of each collection, or 8 MiB."""

from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import msgspec

from analysis.arguments import check_type
from analysis.errors import AnalysisError
from analysis.sources.newest import NewestEstimates
from analysis.sources.topic import EstimateFilter

SECONDS = 30


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
    check_type("worker", address, str, "an address such as http://127.0.0.1:8321")
    if urlsplit(address).scheme not in ("http", "https"):
        raise AnalysisError(f"worker must be an address such as http://127.0.0.1:8321, got {address}")
    url = f"{address.rstrip('/')}/api/history/{quote(wanted.name, safe='')}"
    try:
        with urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - http or https
            body = answer.read()
    except HTTPError as error:
        with error:
            said = error.read(1000).decode(errors="replace")
        raise AnalysisError(f"the worker at {address} answered {error.code} to {url}: {said}") from error
    except (URLError, OSError) as error:
        raise AnalysisError(f"no worker answers at {address}: {error}") from error
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
