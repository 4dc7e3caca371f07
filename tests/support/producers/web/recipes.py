"""The files and commands of docs/recording.md, exactly as the page shows them."""

import re
from pathlib import Path

from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "recording.md").read_text(encoding="utf-8")

#: Text of each code block by the file name in its first line.
_BLOCK = re.compile(r"^```\w+\n(# ([\w.]+)\n.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {name: text for text, name in _BLOCK.findall(PAGE)}

#: Indented command lines.
COMMANDS = re.findall(r"^    ((?:uvicorn|gunicorn|python) .*)$", PAGE, re.MULTILINE)


def write_files(folder: Path) -> None:
    """Write every file of the page to a folder."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")


def command(program: str) -> str:
    """Return the page's one command line that begins with this program."""
    (line,) = (line for line in COMMANDS if line.startswith(f"{program} "))
    return line
