"""A real Prometheus on loopback, asked as Grafana asks it. Source: Prometheus, HTTP API."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from deploy.broker.child_processes import last_lines, spawn, stop
from deploy.broker.ports import free_port
from tests.support.needed import missing
from tests.support.processes import wait_until

START_SECONDS = 60
ANSWER_SECONDS = 30


class Span(NamedTuple):
    """A time that is asked about, in unix seconds."""

    start: float
    end: float


class Prometheus(NamedTuple):
    """A server that runs."""

    port: int

    def ask(self, path: str, **parameters: object) -> Any:
        """Return `data` of the answer to a GET of `/api/v1/PATH`.

        Raises
        ------
        ValueError with the server's words when it refuses the question.
        """
        status, body = self._get(f"/api/v1/{path}?{urlencode(parameters)}")
        answer = json.loads(body)
        if status != 200:
            raise ValueError(f"{answer['error']}: {parameters}")
        return answer["data"]

    def numbers(self, expression: str, span: Span) -> list[float]:
        """All that a panel over a span can draw of an expression, a second a step: NaN it cannot."""
        series = self.ask("query_range", query=expression, start=span.start, end=span.end, step=1)["result"]
        found = [float(value) for each in series for _, value in each["values"]]
        return [number for number in found if not isnan(number)]

    def label_values(self, label: str, selector: str, span: Span) -> list[str]:
        """Return a dashboard variable's choices: the values that a label of these series had in a period."""
        asked = {"match[]": selector, "start": span.start, "end": span.end}
        found: list[str] = self.ask(f"label/{label}/values", **asked)
        return found

    def rules(self) -> list[dict[str, Any]]:
        """All rules, as they came out when they were last evaluated."""
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def is_ready(self) -> bool:
        """Whether it answers queries."""
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
    """Where the server is; the test is skipped where it is not."""
    found = shutil.which("prometheus")
    if found is None:
        missing("prometheus is missing: it is in Debian's package prometheus")
    return found


@contextmanager
def scraping(targets: Sequence[str], rules: Path, folder: Path) -> Iterator[Prometheus]:
    """A server that scrapes each second, as one job, and ends with this.

    Parameters
    ----------
    targets : `host:port` each.
    rules : folder of the rule files that it loads.
    folder : takes its configuration, data and log.
    """
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules / "*.yml")],
        "scrape_configs": [{"job_name": "deniable", "static_configs": [{"targets": list(targets)}]}],
    }
    file, log = folder / "prometheus.yml", folder / "prometheus.log"
    file.write_text(json.dumps(configuration), encoding="utf-8")
    server = Prometheus(free_port())
    options = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
    child = spawn([program(), *options, f"--web.listen-address=127.0.0.1:{server.port}"], log)
    try:
        assert wait_until(server.is_ready, START_SECONDS), last_lines(log)
        yield server
    finally:
        stop([child])
