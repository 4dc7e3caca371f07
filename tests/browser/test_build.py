"""The files that ship are what the build makes of the sources, no larger than their documentation says."""

import gzip
import re
import subprocess

import pytest

from tests.support.edge.browser.node import BROWSER, node
from tests.support.edge.browser.npm_tools import PACKAGE, npm_tool
from tests.support.paths import REPOSITORY

MODULE = BROWSER / "deniable.min.js"
MECHANISMS = BROWSER / "mechanisms.min.js"
PARTS = REPOSITORY / "edge" / "try_page" / "parts.js"
CLIENT = (BROWSER / "src" / "client.js").read_text()
OPTIONS = re.search(r"export const open = async \(\{(.*?)\} = \{\}\) => \{", CLIENT, re.DOTALL)[1]


def test_module_is_small_and_has_no_dependency():
    text = MODULE.read_bytes()
    assert len(text) < 14_400
    assert len(gzip.compress(text, 9)) < 7_900
    assert b"import" not in text.replace(b"importKey", b"")
    assert re.search(rb"export\{[\w$]+ as DeniableError,[\w$]+ as memoryStorage,[\w$]+ as open\};\s*$", text)
    assert "dependencies" not in PACKAGE


def test_module_of_mechanisms_is_small_and_has_one_export():
    text = MECHANISMS.read_bytes()
    assert len(text) < 12_000
    assert len(gzip.compress(text, 9)) < 4_100
    assert b"import" not in text
    assert re.search(rb"export\{[\w$]+ as mechanisms\};\s*$", text)
    types = (BROWSER / "mechanisms.d.ts").read_text()
    assert "export const mechanisms: Mechanisms;" in types


def test_types_name_every_option_and_export():
    types = (BROWSER / "deniable.d.ts").read_text()
    names = {re.split("[=:]", each)[0].strip() for each in re.sub(r"\(.*?\)", "", OPTIONS).split(",")} - {""}
    described = re.search(r"interface Options \{(.*?)\n\}", types, re.DOTALL)[1]
    assert set(re.findall(r"^  (\w+)\??:", described, re.MULTILINE)) == names
    for name in ("open", "memoryStorage", "DeniableError"):
        assert re.search(rf"^export (function|class) {name}\b", types, re.MULTILINE)


def test_docs_state_the_default_of_every_option():
    page = (REPOSITORY / "docs" / "browser.md").read_text()
    stated = dict(re.findall(r"^\| `(\w+)` \|.*\| `?(true|false|\d+)`? \|$", page, re.MULTILINE))
    assert stated == dict(re.findall(r"(\w+) = (\w+)", OPTIONS))
    assert stated["maxDelaySeconds"] == "3600"


@pytest.mark.slow
def test_shipped_files_are_built_from_the_sources(tmp_path):
    """With the pinned esbuild: an installed one, else from the registry."""
    node()
    installed = npm_tool("esbuild", "esbuild", tmp_path)
    built = {
        ("bundle", "join"): MODULE,
        ("mechanisms", "join-mechanisms"): MECHANISMS,
        ("try",): PARTS,
    }
    for scripts, shipped in built.items():
        made = tmp_path / shipped.name
        for script in scripts:
            program, *words = PACKAGE["scripts"][script].split()
            assert program == "esbuild"
            options = [each for each in words if not each.startswith("--outfile=")]
            given = [str(made) if each == shipped.name else each for each in options]
            subprocess.run(
                [installed, *given, f"--outfile={made}"], cwd=BROWSER, check=True, capture_output=True
            )
        assert made.read_bytes() == shipped.read_bytes(), "run npm run build in producers/browser"
