"""What README shows of commands that need no files is what they print."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from deploy.account_command import account
from deploy.estimate_group import estimate
from deploy.plan_command import plan_command

README = Path(__file__).parents[2] / "README.md"
COMMANDS = {"estimate": estimate, "account": account, "plan": plan_command}

#: Command line and what follows it, up to the first line that is not indented.
SAMPLES: dict[str, str] = dict(
    re.findall(r"^    \$ deniable (.*)\n((?:    .*\n)*)", README.read_text(encoding="utf-8"), re.MULTILINE)
)
WITHOUT_FILES = [line for line in SAMPLES if not line.startswith("estimate rappor")]


def test_every_command_of_the_section_has_a_sample() -> None:
    kinds = sorted(" ".join(line.split()[:2]) for line in SAMPLES)
    assert kinds == [
        "account --mechanism",
        "account --mechanism",
        "estimate k-rr",
        "estimate rappor",
        "plan --values",
    ]


@pytest.mark.parametrize("line", WITHOUT_FILES)
def test_a_sample_is_what_its_command_prints(line: str) -> None:
    command, *arguments = shlex.split(line)
    ended = CliRunner().invoke(COMMANDS[command], arguments)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout == re.sub("^    ", "", SAMPLES[line], flags=re.MULTILINE)


def test_the_sample_with_files_ends_in_the_words_of_its_command() -> None:
    """It is of 100,000 candidates, that are screened; their number and the figures depend on the files."""
    (sample,) = (shown for line, shown in SAMPLES.items() if line.startswith("estimate rappor"))
    assert re.search(
        r"^    other strings, and \d+ candidates not chosen: 0\.\d{6}, standard error 0\.\d{6}\n\Z",
        sample,
        re.MULTILINE,
    )
