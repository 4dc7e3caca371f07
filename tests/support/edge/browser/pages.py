"""An app's page that reports: its server on loopback, and the client in it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.edge.browser.node import BROWSER, SCRIPTS
from tests.support.paths import REPOSITORY

SERVED = (
    BROWSER / "deniable.min.js",
    BROWSER / "mechanisms.min.js",
    REPOSITORY / "edge" / "try_page" / "parts.js",
    SCRIPTS / "audit.js",
)
FILES = {"/": (b"<!doctype html><title>app</title><h1>app</h1>", "text/html")}
FILES |= {f"/{file.name}": (file.read_bytes(), "text/javascript") for file in SERVED}


OPEN = """async ({ isFull, ...options }) => {
  const { open } = await import('/deniable.min.js');
  const further = isFull ? await import('/mechanisms.min.js') : {};
  window.client = await open({ ...options, ...further });
}"""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body, content_type = FILES.get(self.path, (b"", "text/plain"))
        self.send_response(200 if self.path in FILES else 404)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        # A cookie of the same host: ports are no part of a cookie's site, so the edge would get it too.
        self.send_header("Set-Cookie", "canary-cookie=1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def app() -> Iterator[str]:
    """Serve the app's page; return its origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


def open_client(page: Any, origin: str, edge: str, key: str, **options: Any) -> None:
    """Go to the app's page and open a client, `client` in the page; `isFull`: with all mechanisms."""
    page.goto(origin)
    given = {"edge": edge, "publicKey": key, "maxEpsilon": 10, "maxDelaySeconds": 0} | options
    page.evaluate(OPEN, given)


def report(page: Any, name: str, value: Any) -> str:
    """Report one value; return the outcome."""
    return str(page.evaluate(f"client.report({json.dumps(name)}, {json.dumps(value)})"))


def status(page: Any) -> dict[str, Any]:
    """Return the client's status."""
    found: dict[str, Any] = page.evaluate("client.status()")
    return found
