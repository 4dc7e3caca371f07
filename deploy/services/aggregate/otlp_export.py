"""Export a worker's metrics and estimates by OTLP, beside `/metrics`.

Rule: counting never depends on it. It has a thread of its own, and a collector that is away costs one line
in the log.
"""

import os
import re
import reprlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
import structlog
from prometheus_client import CollectorRegistry

from deniable.deploy.cli.logs import silence

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.resources import Resource

PATH = "/v1/metrics"
INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
DEFAULT_MILLISECONDS = 60_000
MILLISECONDS = re.compile(r"[1-9][0-9]{2,7}")
SERVICE = "deniable-aggregator"
INSTALL = "pip install 'deniable[worker,otlp]'"

log = structlog.get_logger()


def endpoint_of(_context: click.Context, _parameter: click.Parameter, address: str | None) -> str | None:
    """Return the address to send to: with the protocol's path, if it has none.

    Raises
    ------
    click.BadParameter if it is no address of HTTP, or has a password, which logs would show.
    """
    if address is None:
        return None
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment:
        raise click.BadParameter(
            f"must be an address of HTTP, such as http://127.0.0.1:4318, got {reprlib.repr(address)}"
        )
    if "@" in parts.netloc:
        raise click.BadParameter(
            "must be an address without user and password: give those in OTEL_EXPORTER_OTLP_HEADERS"
        )
    return address if parts.path not in ("", "/") else f"{address.rstrip('/')}{PATH}"


def interval_seconds(environment: Mapping[str, str]) -> float:
    """Return the seconds between two exports; click.ClickException if the variable is no such number."""
    given = environment.get(INTERVAL, str(DEFAULT_MILLISECONDS))
    if not MILLISECONDS.fullmatch(given):
        raise click.ClickException(
            f"{INTERVAL} must be a whole number of milliseconds from 100 to 99999999, got '{given}'"
        )
    return int(given) / 1000


class OtlpExport(threading.Thread):
    """Exports a registry in a daemon thread, which never delays the end of the process.

    Parameters
    ----------
    registry : of the worker.
    endpoint : from `endpoint_of`.
    seconds : between two exports, > 0.

    Raises
    ------
    click.ClickException if the extra is not installed.
    """

    def __init__(self, registry: CollectorRegistry, endpoint: str, seconds: float) -> None:
        super().__init__(name="otlp", daemon=True)
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.sdk.metrics.export import MetricExportResult

            from deniable.aggregator.metrics.otlp_families import metrics_data
        except ModuleNotFoundError as error:
            raise click.ClickException(f"--otlp needs {error.name}: {INSTALL}") from error
        silence("opentelemetry")  # its user logs a failure once, not at each attempt
        exporter = OTLPMetricExporter(endpoint=endpoint)
        started_ns, resource = time.time_ns(), _resource()
        self._read: Callable[[], MetricsData] = lambda: metrics_data(
            registry, resource, started_ns, time.time_ns()
        )
        self._send: Callable[[MetricsData], bool] = lambda data: (
            exporter.export(data) is MetricExportResult.SUCCESS
        )
        self._endpoint = endpoint
        self._seconds = seconds
        self._is_away = False

    def run(self) -> None:
        """Export at once, so that a wrong address shows, and then regularly."""
        while True:
            self.export()
            time.sleep(self._seconds)

    def export(self) -> bool:
        """Export the present figures; return whether the collector took them. Log a change."""
        try:
            is_taken = self._send(self._read())
        except OSError:  # of requests, too
            is_taken = False
        if is_taken and self._is_away:
            log.info("metrics are exported by OTLP again", endpoint=self._endpoint)
        if not is_taken and not self._is_away:
            log.warning(
                "metrics cannot be exported by OTLP; counting goes on",
                endpoint=self._endpoint,
                remedy="start the collector, or correct --otlp and the variables OTEL_EXPORTER_OTLP_…",
            )
        self._is_away = not is_taken
        return is_taken


def _resource() -> "Resource":
    """Who reports: what OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say, else this worker.

    Workers need different instances, since their series are the same otherwise.
    """
    from opentelemetry.sdk.resources import Resource

    named = Resource.create()
    ours = {"service.name": SERVICE, "service.instance.id": f"{socket.gethostname()}:{os.getpid()}"}
    given = _given_names(os.environ)
    return named.merge(Resource({name: each for name, each in ours.items() if name not in given}))


def _given_names(environment: Mapping[str, str]) -> set[str]:
    pairs = environment.get("OTEL_RESOURCE_ATTRIBUTES", "").split(",")
    names = {pair.partition("=")[0].strip() for pair in pairs}
    return names | ({"service.name"} if environment.get("OTEL_SERVICE_NAME") else set())
