"""A real OpenTelemetry Collector, built by its own builder from Go's module proxy, once."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from deniable.deploy.broker.child_processes import last_lines, spawn, stop
from deniable.deploy.broker.locked_folder import cache_folder, lock
from tests.support.needed import tool
from tests.support.processes import new_port, wait_until

VERSION, PROVIDER_VERSION = "v0.165.0", "v1.71.0"
BUILD_SECONDS = 1500  # five minutes on two quiet cores, most of it compiling
START_SECONDS = 60
PARTS = "go.opentelemetry.io/collector"
MANIFEST = f"""\
dist: {{name: otelcol, output_path: ./made}}
receivers: [{{gomod: {PARTS}/receiver/otlpreceiver {VERSION}}}]
exporters: [{{gomod: {PARTS}/exporter/otlphttpexporter {VERSION}}}]
providers: [{{gomod: {PARTS}/confmap/provider/fileprovider {PROVIDER_VERSION}}}]
conf_resolver: {{default_uri_scheme: file}}
"""
SETTINGS = """\
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{receives}"}}}}}}
exporters:
  otlp_http: {{endpoint: "http://127.0.0.1:{sends}", compression: none, sending_queue: {{enabled: false}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    metrics: {{receivers: [otlp], exporters: [otlp_http]}}
"""


def collector_program() -> Path:
    """Return the program, built at the first call; skips the test without Go."""
    go = tool("go", "install Go 1.25 or newer, which builds the collector", "NO_GO")
    folder = cache_folder() / "otelcol"
    digest = blake2b(MANIFEST.encode(), digest_size=4).hexdigest()
    program = folder / f"otelcol-{digest}"
    with lock(folder):
        if not program.exists():
            (folder / "manifest.yaml").write_text(MANIFEST, encoding="utf-8")
            command = [go, "run", f"{PARTS}/cmd/builder@{VERSION}", "--config=manifest.yaml"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_SECONDS)
            assert done.returncode == 0, done.stderr[-4000:]
            (folder / "made" / "otelcol").rename(program)
            shutil.rmtree(folder / "made")
    return program


@contextmanager
def collecting(folder: Path, sends: int) -> Iterator[int]:
    """Run a collector that passes on what it receives; yield the port at which it receives.

    Parameters
    ----------
    folder : of its settings and its log.
    sends : port on loopback to which it sends, by OTLP over HTTP.
    """
    program = collector_program()
    receives = new_port()
    settings, log = folder / "otelcol.yaml", folder / "otelcol.log"
    settings.write_text(SETTINGS.format(receives=receives, sends=sends), encoding="utf-8")
    child = spawn([program, f"--config=file:{settings}"], log)
    try:
        ready = wait_until(lambda: "Everything is ready" in last_lines(log, count=100), START_SECONDS)
        assert ready, last_lines(log)
        yield receives
    finally:
        stop([child])
