"""Time of one report of the browser client, in Node and in Chromium, and of 10,000 in Node."""

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.sections import ResultRow, Section
from deniable import producers
from deniable.config.settings.allowance import Allowance
from deniable.edge.collection_list import collection_list
from deniable.edge.signing_key import SigningKey
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave

ABOUT = """\
The shipped module, from a value to a stored upload: charged, randomized, encoded and queued; nothing is
sent. In IndexedDB at most 20 uploads wait. Distinct values, of lists only 100, so permanent responses of
texts are never met twice; RAPPOR of 128 bits, memoized; pairs of 17 x 3 values. Medians of rounds."""
REPORT_MS, MANY_SECONDS = 1.0, 1.0  # goals
ROUNDS = 3
MANY = 10_000  # reports in Node, in less than a second
NODE, STORED = "Node, in memory", "Chromium, in IndexedDB"
MEDIAN = "median of a report, ms"
ALL = f"{MANY:,} reports, s"
FEW = 500  # in Chromium, each a transaction of IndexedDB
MODULE = Path(producers.__file__).parent / "browser" / "deniable.min.js"
FURTHER = MODULE.with_name("mechanisms.min.js")
SCRIPT = Path(__file__).with_name("browser.js")
FILES = {
    "/": b"<!doctype html>",
    "/browser.js": SCRIPT.read_bytes(),
    **{f"/{module.name}": module.read_bytes() for module in (MODULE, FURTHER)},
}
PAIR = tuple(
    Field(name, tuple(f"{name}-{i}" for i in range(size)), other=True)
    for name, size in (("first", 16), ("second", 2))
)
COLLECTIONS = [
    Collection("k-rr", KRR.from_epsilon(100, 2.0), window_seconds=86400),
    Collection("longitudinal", LongitudinalKRR.from_epsilons(100, 4.0, 2.0), window_seconds=86400),
    Collection(
        "rappor", Rappor.from_probabilities(128, 2, 8, 0.3, 0.35, 0.65), memoize=True, window_seconds=86400
    ),
    Collection("local-hash", LocalHash.from_epsilon(1.0), window_seconds=86400),
    Collection(
        "local-hash-longitudinal",
        LongitudinalHash.from_epsilons(2.0, 1.0),
        memoize=True,
        window_seconds=86400,
    ),
    Collection("number", SquareWave.from_epsilon(0.0, 100.0, 256, 1.0), window_seconds=86400),
    *(
        Collection(name, pair, values=pair_labels(*PAIR), fields=PAIR, window_seconds=86400)
        for name, pair in (
            ("k-rr-pair", PairKRR.from_epsilons(17, 3, 0.5, 0.5)),
            ("one-hot-pair", OneHotPair.from_epsilon(17, 3, 1.0)),
        )
    ),
]
IN_NODE = """
globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const [{{ measure }}, module] = [await import("{script}"), await import("{module}")];
const further = await import("{further}");
process.stdout.write(JSON.stringify(await measure({{ ...module, ...further }}, {given})));
process.exit(0);
"""
IN_PAGE = """async (given) => (await import('/browser.js')).measure(
  { ...await import('/deniable.min.js'), ...await import('/mechanisms.min.js') }, given)"""

Engine = Callable[[dict[str, Any]], dict[str, float]]


def browser() -> Section:
    """Measure all mechanisms in both engines."""
    found = [row(collection.name, NODE, MANY, False, in_node) for collection in COLLECTIONS]
    with page() as engine:
        found += [row(each.name, STORED, FEW, True, engine) for each in COLLECTIONS]
        found += [row(each.name, "Chromium, in memory", MANY, False, engine) for each in COLLECTIONS]
    return Section(ABOUT, found, missed=[why for each in found for why in missed(each)])


def missed(found: ResultRow) -> list[str]:
    """What falls short of its goal."""
    name, seconds = f"{found['mechanism']}, {found['where']}", float(found[ALL])
    # Clocks of browsers are coarse: a median is meaningful only where a report takes long.
    one = float(found[MEDIAN]) if found["where"] == STORED else 1000 * seconds / MANY
    late = [f"{name}: {one:.2f} ms a report, of {REPORT_MS:g}"] if one > REPORT_MS else []
    if found["where"] == NODE and seconds > MANY_SECONDS:
        late.append(f"{name}: {MANY:,} reports take {seconds:.2f} s, of {MANY_SECONDS:g}")
    return late


def row(name: str, where: str, reports: int, is_stored: bool, engine: Engine) -> ResultRow:
    """Measure one mechanism in one engine."""
    key = SigningKey(Ed25519PrivateKey.generate())
    allowances = [Allowance(each, None, 65535) for each in COLLECTIONS]
    given = {
        "list": collection_list(1, allowances, 10, key).body.decode(),
        "publicKey": key.public_key,
        "name": name,
        "reports": reports,
        "isStored": is_stored,
    }
    rounds = [engine(given) for _ in range(ROUNDS)]
    return {
        "mechanism": name,
        "where": where,
        MEDIAN: median(each["median"] for each in rounds),
        "99 %, ms": median(each["late"] for each in rounds),
        ALL: median(each["all"] for each in rounds) / 1000 * MANY / reports,
    }


def in_node(given: dict[str, Any]) -> dict[str, float]:
    """Measure in a process of Node."""
    node = shutil.which("node")
    if node is None:
        raise click.ClickException("node is missing: apt-get install nodejs")
    script = IN_NODE.format(
        script=SCRIPT.as_uri(), module=MODULE.as_uri(), further=FURTHER.as_uri(), given=json.dumps(given)
    )
    command = [node, "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = FILES.get(self.path, b"")
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def page() -> Iterator[Engine]:
    """Open a page in Chromium; yield what measures there, each time in a new context."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("google-chrome")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server, sync_playwright() as driver:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chromium = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])

        def engine(given: dict[str, Any]) -> dict[str, float]:
            with chromium.new_context() as context:
                context.set_default_timeout(120_000)
                opened = context.new_page()
                opened.goto(f"http://127.0.0.1:{server.server_port}/")
                measured: dict[str, float] = opened.evaluate(IN_PAGE, given)
                return measured

        yield engine
        chromium.close()
        server.shutdown()


CASES = {"browser": browser}
