"""Messages of errors, pinned in one golden file a package: what was wrong, then the whole message.

`make messages` writes the files again; read the difference before committing it. A test pins the messages of
its subject in one case:

    def test_messages(pin_messages: PinMessages) -> None:
        pin_messages({"epsilon is NaN": lambda: KRR(nan, 4), "one value": lambda: KRR(1.0, 1)})
"""

import difflib
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.paths import REPOSITORY

TESTS = REPOSITORY / "tests"
HEAD = "## "

Action = Callable[[], object]
PinMessages = Callable[[Mapping[str, Action]], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-messages", action="store_true", help="write the golden files of messages (make messages)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run no other tests while messages are written."""
    if config.getoption("--write-messages"):
        pinning = [item for item in items if "pin_messages" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=set(items) - set(pinning))
        items[:] = pinning


@pytest.fixture
def pin_messages(request: pytest.FixtureRequest, tmp_path: Path) -> PinMessages:
    """Compare the message of each action with the golden file of the test's package.

    An action raises an exception, or returns what a command printed: a string. The path of the test's
    temporary folder is replaced by TMP.
    """
    path = Path(request.node.path).relative_to(TESTS)
    golden = TESTS / path.parts[0] / "messages.txt"
    title = f"{path.relative_to(path.parts[0])}::{request.node.name}"

    def check(actions: Mapping[str, Action]) -> None:
        messages = {what: _message(what, action) for what, action in actions.items()}
        text = "".join(f"{what}\n{textwrap.indent(message, '    ')}\n" for what, message in messages.items())
        text = text.replace(str(tmp_path), "TMP")
        sections = _read(golden)
        if request.config.getoption("--write-messages"):
            _write(golden, sections | {title: text})
        elif sections.get(title) != text:
            lines = [each.splitlines() for each in (sections.get(title, ""), text)]
            difference = "\n".join(difflib.unified_diff(*lines, "pinned", "now", lineterm="", n=1))
            pytest.fail(
                f"other messages than in {golden}; `make messages` pins them:\n{difference}", pytrace=False
            )

    return check


def refusal_of(ended: Result, status: int) -> str:
    """Return what a command said without the usage above it; its status is this, and its stdout empty."""
    assert (ended.exit_code, ended.stdout) == (status, ""), ended.output
    assert "Error: " in ended.stderr, ended.exception
    return ended.stderr[ended.stderr.index("Error: ") :]


def _message(what: str, action: Action) -> str:
    try:
        printed = action()
    except Exception as error:  # noqa: BLE001 - whatever it raises is pinned with its type
        status = getattr(error, "exit_status", None)
        return f"{type(error).__name__}{'' if status is None else f' (exit status {status})'}: {error}"
    if not isinstance(printed, str):
        pytest.fail(f"{what}: nothing was refused", pytrace=False)
    return printed.rstrip("\n")


def _read(golden: Path) -> dict[str, str]:
    """Return the sections of a golden file by title."""
    if not golden.exists():
        return {}
    parts = re.split(rf"^{HEAD}(.+)\n\n", golden.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {title: text.rstrip("\n") + "\n" for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def _write(golden: Path, sections: Mapping[str, str]) -> None:
    text = "\n".join(f"{HEAD}{title}\n\n{sections[title]}" for title in sorted(sections))
    golden.write_text(text, encoding="utf-8")
