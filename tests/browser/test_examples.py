"""Each example counts a choice and heeds an opt-out, in Chromium; the package has its types."""

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.protocol.uploads.upload import decode_upload
from tests.support.edge.browser.node import BROWSER
from tests.support.edge.browser.npm_tools import npm_tool
from tests.support.edge.served import KEY, served
from tests.support.needed import missing, tool
from tests.support.processes import wait_until

pytestmark = [pytest.mark.all, pytest.mark.browser]

EXAMPLES = BROWSER / "examples"
PLAN = Collection("plan", KRR.from_epsilon(3, 2.0), ("free", "team"), other=True, window_seconds=3600)
LIBRARIES = ("react@19.3.1", "react-dom@19.3.1", "vue@3.5.45")
PAGE = (
    '<!doctype html><meta charset="utf-8"><div id="app"></div><script type="module" src="made.js"></script>'
)
TYPED = """
import { open, DeniableError } from "deniable-browser";
import { mechanisms } from "deniable-browser/mechanisms";
const client = await open({ edge: "https://edge.example", publicKey: "", maxEpsilon: 2, mechanisms });
type Outcome = "queued" | "over_window" | "over_budget" | "too_late" | "opted_out";
const outcome: Outcome = await client.report("plan", "team");
try { await client.flush(); } catch (error) { if (error instanceof DeniableError) error.reason; }
await open({ edge: "https://edge.example", maxEpsilon: 2 });
"""


@contextmanager
def files(folder: Path) -> Iterator[str]:
    """Serve a folder; return its origin."""
    handler = partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, from its tarball, and what the examples import."""
    npm, folder = tool("npm", "apt-get install npm", "NO_NPM"), tmp_path_factory.mktemp("app")
    subprocess.run(
        [npm, "pack", "--silent", "--pack-destination", folder], cwd=BROWSER, check=True, timeout=120
    )
    tarball = next(folder.glob("deniable-browser-*.tgz"))
    command = [npm, "install", "--no-package-lock", "--silent", "--prefix", folder, tarball, *LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    if done.returncode:
        missing(f"npm cannot install {', '.join(LIBRARIES)}: {done.stderr.strip()[-200:]}")
    return folder


def made(example: str, folder: Path, installed: Path, options: dict[str, Any]) -> None:
    """Put an example's page into a folder, with other options than its own; built, unless it is a page."""
    given = f"export const options = {json.dumps(options)};"
    if example.endswith(".html"):
        (folder / "index.html").write_bytes((EXAMPLES / example).read_bytes())
        (folder / "deniable.min.js").write_bytes((BROWSER / "deniable.min.js").read_bytes())
        (folder / "options.js").write_text(given)
        return
    (installed / example).write_bytes((EXAMPLES / example).read_bytes())
    (installed / "options.js").write_text(given)
    esbuild = npm_tool("esbuild", "esbuild", folder)
    choices = ["--bundle", "--format=esm", "--jsx=automatic", '--define:process.env.NODE_ENV="production"']
    choices += [
        f"--define:{name}=false"
        for name in ("__VUE_PROD_DEVTOOLS__", "__VUE_PROD_HYDRATION_MISMATCH_DETAILS__")
    ]
    choices += ["--define:__VUE_OPTIONS_API__=true", f"--outfile={folder / 'made.js'}", "--log-level=error"]
    subprocess.run([esbuild, example, *choices], cwd=installed, check=True, timeout=60)
    (folder / "index.html").write_text(PAGE)


@pytest.mark.parametrize("example", ["plain.html", "react.jsx", "vue.js"])
def test_choice_and_opt_out_reach_the_edge(
    example: str, browser: Any, installed: Path, tmp_path: Path
) -> None:
    with (
        files(tmp_path) as origin,
        served(allow_origins=(origin,), allowances=(Allowance(PLAN, None, 9),)) as edge,
    ):
        address = f"http://127.0.0.1:{edge.port}"
        options = {
            "edge": address,
            "publicKey": KEY.public_key,
            "maxEpsilon": {"plan": 2},
            "maxDelaySeconds": 0,
        }
        made(example, tmp_path, installed, options)
        page, uploads = browser.new_page(), edge.edge.kafka.uploads
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(origin)
        page.wait_for_selector("#takes-part:checked")
        page.click("#team")
        assert wait_until(lambda: page.wait_for_timeout(50) or len(uploads()) == 1, 30), said
        assert decode_upload(uploads()[0]).groups[0].fingerprint == PLAN.fingerprint
        page.click("#takes-part")
        page.wait_for_selector("#takes-part:enabled:not(:checked)")
        page.reload()
        page.wait_for_selector("#takes-part:not(:checked)")
        page.click("#team")
        page.click("#takes-part")
        page.wait_for_selector("#takes-part:enabled:checked")
        page.click("#team")
        assert wait_until(lambda: page.wait_for_timeout(50) or len(uploads()) == 2, 30), said
        page.close()
        assert [each for each in said if "favicon" not in each and "404" not in each] == []


def test_package_has_its_types(installed: Path, tmp_path: Path) -> None:
    tsc = npm_tool("typescript", "tsc", tmp_path)
    (installed / "typed.mts").write_text(TYPED)
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"]
    done = subprocess.run(
        [tsc, *options, "typed.mts"], cwd=installed, capture_output=True, text=True, check=False
    )
    wrong = [line for line in done.stdout.splitlines() if "error" in line]
    assert len(wrong) == 1, done.stdout
    assert wrong[0].startswith("typed.mts(8,"), done.stdout
    assert "'publicKey' is missing" in done.stdout
