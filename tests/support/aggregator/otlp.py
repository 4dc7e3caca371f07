"""What comes by OTLP: a collector of ours, and the decoder that belongs to the protocol."""

import gzip
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from typing import Any

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics.export import MetricsData

OtlpSamples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def decoded(data: MetricsData) -> Sequence[Any]:
    """Encode as the exporter does, decode by the protocol's classes, and return the metrics."""
    request = ExportMetricsServiceRequest()
    request.ParseFromString(encode_metrics(data).SerializeToString())
    return metrics_of(request)


def metrics_of(request: ExportMetricsServiceRequest) -> list[Any]:
    """Return the metrics of all scopes."""
    return [
        metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]


def samples_of(metrics: Sequence[Any]) -> OtlpSamples:
    """Return the samples that Prometheus would have of these metrics, by name and labels."""
    found: OtlpSamples = {}
    for metric in metrics:
        for point in (*metric.sum.data_points, *metric.gauge.data_points):
            found[metric.name, _labels(point)] = point.as_double
        for point in metric.histogram.data_points:
            labels = _labels(point)
            ends = [*(f"{end}" for end in point.explicit_bounds), "+Inf"]
            for end, total in zip(ends, accumulate(point.bucket_counts), strict=True):
                found[f"{metric.name}_bucket", labels | {("le", end)}] = total
            found[f"{metric.name}_sum", labels] = point.sum
            found[f"{metric.name}_count", labels] = point.count
    return found


def _labels(point: Any) -> frozenset[tuple[str, str]]:
    return frozenset((each.key, each.value.string_value) for each in point.attributes)


class OtlpRequests:
    """Requests that came, decoded, with names of headers in lower case; `status` is what is answered."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.port = 0


@contextmanager
def otlp_requests(port: int = 0) -> Iterator[OtlpRequests]:
    """Listen on loopback like a collector."""
    found = OtlpRequests()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = ExportMetricsServiceRequest()
            request.ParseFromString(body)
            found.requests.append(request)
            found.paths.append(self.path)
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(found.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
