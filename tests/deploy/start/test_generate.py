"""Typed functions of a collection file: what is misspelt fails in a type checker."""

import json
import os
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.deploy.start.generate import generate
from tests.support.edge.browser.node import BROWSER
from tests.support.edge.browser.npm_tools import npm_tool
from tests.support.messages import PinMessages
from tests.support.paths import REPOSITORY

FILE = """
collections:
  - {name: plan, mechanism: k-rr, values: [free, 'a "quoted" one'], epsilon: 2, WINDOW}
  - {name: items-in-cart, mechanism: k-rr, size: 30, other: true, epsilon: 2, WINDOW}
  - {name: amount, mechanism: number, minimum: 0, maximum: 100, epsilon: 2, WINDOW}
  - {name: class, mechanism: rappor-k-hot, values: [A, B, C], hot: 2, epsilon_inf: 4, epsilon_one: 2, WINDOW}
  - {name: route, mechanism: k-rr-pair, epsilon: 2, WINDOW,
     fields: [{name: from, values: [JFK]}, {name: to, values: [LAX, BOS], other: false}]}
  - {name: country, mechanism: rappor, bits: 16, hashes: 1, cohorts: 1, epsilon_inf: 4, epsilon_one: 2,
     candidates: [BOS], WINDOW}
""".replace("WINDOW", "window_seconds: 60, grace_seconds: 5, budget: none")
RIGHT_PYTHON = """
events.plan("free", client="person", at=60)
events.plan("(other)")
events.items_in_cart(3)
events.amount(2.5)
events.class_({"A", "B"})
events.route(("JFK", "LAX"))
events.country("anything")
"""
WRONG_PYTHON = 'events.plan("fre")\nevents.plam("free")\nevents.route(("JFK", "JFK"))\nevents.class_({"D"})\n'
RIGHT_TYPESCRIPT = """
events.report("plan", "free"); events.report("items-in-cart", 3n); events.report("amount", 2.5);
events.report("class", new Set(["A"] as const)); events.report("route", ["JFK", "LAX"]);
events.report("country", "anything"); void events.optOut();
"""
WRONG_TYPESCRIPT = (
    'events.report("plan", "fre");\nevents.report("plam", "free");\nevents.report("amount", "2");\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "deniable.yaml"
    path.write_text(FILE)
    return path


def made(file: Path, language: str) -> str:
    done = CliRunner().invoke(generate, [f"--{language}", "--config", str(file)])
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def test_functions_record_what_they_are_given(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deniable.testing import open_double

    namespace: dict[str, object] = {"double": open_double(file)}
    exec(made(file, "python") + "events = Events(double)\n" + RIGHT_PYTHON, namespace)  # noqa: S102
    assert namespace["double"].events == [
        ("plan", "free", "person", 60),
        ("plan", "(other)", None, None),
        ("items-in-cart", 3, None, None),
        ("amount", 2.5, None, None),
        ("class", {"A", "B"}, None, None),
        ("route", ("JFK", "LAX"), None, None),
        ("country", "anything", None, None),
    ]


def test_lines_of_python_are_short(file: Path) -> None:
    """However many values there are, and whatever is in them."""
    values = [f'a "quoted", [long] value {number}' for number in range(60)]
    long = (
        f"k-rr, values: {json.dumps(values)}, epsilon: 2, window_seconds: 60, grace_seconds: 5, budget: none"
    )
    name = "a" * 63
    file.write_text(f"{FILE}  - {{name: {name}, mechanism: {long}}}\n")
    text = made(file, "python")
    assert max(map(len, text.splitlines())) <= 100
    hints = typing.get_type_hints(getattr(events_of(text), name))
    assert typing.get_args(hints["value"]) == (*values, "(other)")


def events_of(text: str) -> type:
    namespace: dict[str, type] = {}
    exec(text, namespace)  # noqa: S102
    return namespace["Events"]


@pytest.mark.slow
def test_misspelt_values_fail_mypy(file: Path) -> None:
    head = "import deniable\nfrom deniable.testing import open_double\nfrom events import Events\n"
    head += "def use(producer: deniable.Producer) -> None:\n"
    lines = [
        "Events(open_double(''))",
        "events = Events(producer)",
        *(RIGHT_PYTHON + WRONG_PYTHON).strip().splitlines(),
    ]
    Path(file.parent, "events.py").write_text(made(file, "python"))
    Path(file.parent, "use.py").write_text(head + "".join(f"    {each}\n" for each in lines))
    command = [sys.executable, "-m", "mypy", "--strict", str(file.parent / "use.py")]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,  # which has a cache
        env={**os.environ, "MYPYPATH": str(file.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    first = len(head.splitlines()) + len(lines) - 3
    wrong = [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]
    assert wrong == [str(first + place) for place in range(4)], done.stdout


@pytest.mark.nightly
def test_misspelt_values_fail_in_typescript(file: Path) -> None:
    tsc, types = npm_tool("typescript", "tsc", file.parent), file.parent / "node_modules" / "deniable-browser"
    types.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "deniable.d.ts"):
        Path(types, name).write_bytes((BROWSER / name).read_bytes())
    head = 'import type { Client } from "deniable-browser";\nimport { typed } from "./events.js";\n'
    head += "declare const client: Client;\nconst events = typed(client);"
    Path(file.parent, "events.ts").write_text(made(file, "typescript"))
    Path(file.parent, "use.ts").write_text(head + RIGHT_TYPESCRIPT + WRONG_TYPESCRIPT)
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"]
    done = subprocess.run(
        [tsc, *options, "use.ts"], cwd=file.parent, capture_output=True, text=True, check=False
    )
    first = len((head + RIGHT_TYPESCRIPT).splitlines()) + 1
    wrong = [int(line.split("(")[1].split(",")[0]) for line in done.stdout.splitlines() if "error" in line]
    assert wrong == [first, first + 1, first + 2], done.stdout


def test_what_cannot_be_written_is_said(file: Path, pin_messages: PinMessages) -> None:
    def refused(*arguments: str) -> str:
        done = CliRunner().invoke(generate, [*arguments, "--config", str(file)])
        return f"{done.exit_code} {done.stderr}"

    file.write_text(FILE.replace("name: class", "name: items_in_cart"))
    pin_messages(
        {
            "no language": lambda: refused(),
            "both languages": lambda: refused("--python", "--typescript"),
            "one name for two": lambda: refused("--python"),
        }
    )
