"""Node, and scripts that run in it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.needed import tool
from tests.support.paths import REPOSITORY

BROWSER = REPOSITORY / "producers" / "browser"
SCRIPTS = Path(__file__).with_name("scripts")


class JavaScriptError(Exception):
    """What a question ended with: the class of the error, its reason and its message."""


def node() -> str:
    """Return the path of Node, or skip the test."""
    return tool("node", "apt-get install nodejs", "NO_NODE")


def run(script: str, *arguments: str, given: str = "", seconds: float = 120) -> str:
    """Run a script in Node, with `given` on its stdin; return what it printed."""
    command = [node(), str(SCRIPTS / script), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Asked:
    """A process of Node that answers questions about the client's sources."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, question: str, **given: Any) -> Any:
        """Return the answer to one question; raise JavaScriptError if it ended with an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"question": question} | given) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise JavaScriptError(answer["error"], answer["reason"], answer["message"])
        return answer["answer"]


@contextmanager
def asked() -> Iterator[Asked]:
    """Start a process that answers questions."""
    command = [node(), str(SCRIPTS / "answer.mjs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Asked(process)
        assert process.stdin is not None
        process.stdin.close()


def broken_sources(folder: Path, file: str, right: str, wrong: str) -> Path:
    """Copy the client's sources, with one place in one file changed; return their folder."""
    copied = folder / "src"
    shutil.copytree(BROWSER / "src", copied)
    shutil.copy(BROWSER / "package.json", folder)
    text = (copied / file).read_text()
    assert text.count(right) == 1
    (copied / file).write_text(text.replace(right, wrong))
    return copied
