"""Devices that differ in values alone do and send the same, but for random bytes; only types are refused.

Values of the right type, whatever they are: integers that are none, enormous ones, lone surrogates, long and
empty texts, arrays with holes, too few, too many or other members.
"""

import subprocess

import pytest

from tests.support.edge.browser.lists import lists_for_scripts
from tests.support.edge.browser.node import BROWSER, SCRIPTS, broken_sources, node, run

COLLECTIONS, REPORTS = 13, 3


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [10, pytest.param(200, marks=pytest.mark.nightly)])
def test_nothing_depends_on_values(pairs):
    modules = [str(BROWSER / name) for name in ("deniable.min.js", "mechanisms.min.js")]
    compared = run("values.mjs", *modules, lists_for_scripts(), str(pairs), seconds=250)
    assert int(compared) == COLLECTIONS * REPORTS * pairs


BROKEN = {
    "numbers that are no integers are refused": (
        "mechanisms/krr.js",
        "bucketLosses(k, first, second),",
        'bucketLosses(k, first, second), "", (value) => listed || Number.isInteger(Number(value)),',
    ),
    "a pair of another length is refused": (
        "mechanisms/pair.js",
        "(k - 1n))))),\n    TAKES, isArray,",
        "(k - 1n))))),\n    TAKES, (value) => value.length === 2,",
    ),
    "unlisted text has another size": (
        "upload.js",
        "const end = row.length + 50,",
        "const end = row.length + 50 + (row[0] === 0),",
    ),
}


@pytest.mark.all
@pytest.mark.parametrize("name", BROKEN)
def test_dependence_on_values_is_found(tmp_path, name):
    file, right, wrong = BROKEN[name]
    copied = broken_sources(tmp_path, file, right, wrong)
    modules = [str(copied / name) for name in ("deniable.js", "mechanisms.js")]
    command = [node(), str(SCRIPTS / "values.mjs"), *modules, lists_for_scripts(), "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode
    assert "AssertionError" in done.stderr
