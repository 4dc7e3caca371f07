"""A real Prometheus on loopback, queried like Grafana does. Source: Prometheus, HTTP API."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from deniable.deploy.broker.child_processes import last_lines, spawn, stop
from tests.support.needed import missing
from tests.support.processes import new_port, wait_until

START_SECONDS = 60
ANSWER_SECONDS = 30


class Span(NamedTuple):
    """A time span of a query, in unix seconds."""

    start: float
    end: float


class Prometheus(NamedTuple):
    """A running server."""

    port: int

    def ask(self, path: str, **parameters: object) -> Any:
        """Return `data` of the answer to a GET of `/api/v1/PATH`.

        Raises
        ------
        ValueError with the server's message if it refuses the query.
        """
        status, body = self._get(f"/api/v1/{path}?{urlencode(parameters)}")
        answer = json.loads(body)
        if status != 200:
            raise ValueError(f"{answer['error']}: {parameters}")
        return answer["data"]

    def numbers(self, expression: str, span: Span) -> list[float]:
        """Return the figures of an expression in a span, one a second, without NaN."""
        series = self.ask("query_range", query=expression, start=span.start, end=span.end, step=1)["result"]
        found = [float(value) for each in series for _, value in each["values"]]
        return [number for number in found if not isnan(number)]

    def label_values(self, label: str, selector: str, span: Span) -> list[str]:
        """Return the choices of a dashboard variable: the values of a label of these series in a period."""
        asked = {"match[]": selector, "start": span.start, "end": span.end}
        found: list[str] = self.ask(f"label/{label}/values", **asked)
        return found

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules with the results of their last evaluation."""
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def is_ready(self) -> bool:
        """Return whether it answers queries."""
        try:
            return self._get("/-/ready")[0] == 200
        except OSError:
            return False

    def _get(self, address: str) -> tuple[int, bytes]:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)) as connection:
            connection.request("GET", address)
            response = connection.getresponse()
            return response.status, response.read()


def program() -> str:
    """Path of the server; without it the test is skipped."""
    found = shutil.which("prometheus")
    if found is None:
        missing("prometheus is missing: it is in Debian's package prometheus")
    return found


@contextmanager
def scraping(targets: Sequence[str], rules: Path, folder: Path) -> Iterator[Prometheus]:
    """Run a server that scrapes every second, as one job, and ends with this process.

    Parameters
    ----------
    targets : `host:port` of each.
    rules : folder of the rule files that it loads.
    folder : for its configuration, data and log.
    """
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules / "*.yml")],
        "scrape_configs": [{"job_name": "deniable", "static_configs": [{"targets": list(targets)}]}],
    }
    file, log = folder / "prometheus.yml", folder / "prometheus.log"
    file.write_text(json.dumps(configuration), encoding="utf-8")
    server = Prometheus(new_port())
    options = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
    child = spawn([program(), *options, f"--web.listen-address=127.0.0.1:{server.port}"], log)
    try:
        assert wait_until(server.is_ready, START_SECONDS), last_lines(log)
        yield server
    finally:
        stop([child])
