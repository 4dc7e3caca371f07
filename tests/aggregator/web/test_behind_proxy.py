"""The page behind nginx, as docs/page.md configures it: a login, then the page and its events."""

import asyncio
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from aiohttp import encode_basic_auth

from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web.server import WebServer
from tests.support.aggregator.builders import COLLECTIONS
from tests.support.brokers.secured.certificates import Authority
from tests.support.needed import tool
from tests.support.paths import REPOSITORY
from tests.support.processes import new_port, wait_until

pytestmark = pytest.mark.all

PASSWORD = "{PLAIN}open sesame"  # in nginx's own notation
LOGIN = {"Authorization": encode_basic_auth("ann", "open sesame")}
(SERVER,) = re.findall(
    r"```nginx\n(.*?)```", (REPOSITORY / "docs" / "page.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Ports of nginx and of the page behind it; only ports and paths differ from the documented server."""
    program = tool("nginx", "apt-get install nginx-light", "NO_NGINX")
    proxy_port, page_port = new_port(), new_port()
    certificate = Authority("proxy-root", tmp_path).issue("stats.example", server=True)
    (tmp_path / "users").write_text(f"ann:{PASSWORD}\n")
    server = SERVER
    for documented, here in (
        ("listen 443", f"listen 127.0.0.1:{proxy_port}"),
        ("/etc/ssl/stats.example.pem", str(certificate.certificate_file)),
        ("/etc/ssl/stats.example.key", str(certificate.key_file)),
        ("/etc/nginx/estimates.htpasswd", str(tmp_path / "users")),
        ("127.0.0.1:8321", f"127.0.0.1:{page_port}"),
    ):
        assert documented in server
        server = server.replace(documented, here)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in kinds)
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{server}}}\n"
    )
    errors = tmp_path / "error.log"
    with subprocess.Popen([program, "-e", errors, "-c", tmp_path / "nginx.conf"]) as process:
        assert wait_until(lambda: process.poll() is not None or _listens(proxy_port))
        assert process.poll() is None, errors.read_text()
        yield proxy_port, page_port
        process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_login_then_page_and_events(nginx: tuple[int, int]) -> None:
    asyncio.run(_serve_a_visit(*nginx))


async def _serve_a_visit(proxy_port: int, page_port: int) -> None:
    server = WebServer(
        COLLECTIONS,
        EstimateHistory(COLLECTIONS.values()),
        WorkerMetrics(COLLECTIONS),
        list,
        page_hosts=["stats.example"],
    )
    assert await server.start(page_port) == page_port
    try:
        # aiohttp's client leaves connections in TLS open when its loop ends.
        await asyncio.to_thread(_visit, proxy_port)
    finally:
        await server.stop()


def _visit(proxy_port: int) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def ask(path: str, **headers: str) -> tuple[int, str]:
        """Status and first line."""
        with closing(HTTPSConnection("127.0.0.1", proxy_port, timeout=60, context=context)) as connection:
            connection.request("GET", path, headers={"Host": "stats.example"} | headers)
            with connection.getresponse() as answer:
                return answer.status, answer.readline().decode()

    assert ask("/")[0] == 401
    assert ask("/", **LOGIN) == (200, "<!doctype html>\n")
    status, event = ask("/api/events", **LOGIN)  # at once, not when nginx's buffer is full
    assert status == 200
    assert event
    assert ask("/", **LOGIN, Host="evil.example")[0] == 421
