"""Samples of offline commands in README and docs match their output; links have targets."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.deploy.cli.commands import COMMANDS as LISTED
from deniable.deploy.offline.account import account
from deniable.deploy.offline.check import check
from deniable.deploy.offline.estimate_rappor import estimate
from deniable.deploy.offline.plan import plan_command
from tests.support.paths import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DOCS = REPOSITORY / "docs"
COMMANDS_PAGE = (DOCS / "commands.md").read_text(encoding="utf-8")
PARAMETERS = (REPOSITORY / "docs" / "parameters.md").read_text(encoding="utf-8")
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
COMMANDS = {"estimate": estimate, "account": account, "plan": plan_command, "check": check}


def samples(text: str) -> dict[str, str]:
    """Yield each command line and the indented lines after it."""
    return dict(re.findall(r"^    \$ deniable (.*)\n((?:    .*\n)*)", text, re.MULTILINE))


def kinds(text: str) -> list[str]:
    return sorted(" ".join(line.split()[:2]) for line in samples(text))


SAMPLES = samples(COMMANDS_PAGE)
WITHOUT_FILES = {
    line: shown
    for line, shown in (SAMPLES | samples(PARAMETERS)).items()
    if not line.startswith(("estimate rappor", "estimate k-rr-pair", "check"))
}


def printed(line: str) -> str:
    command, *arguments = shlex.split(line)
    ended = CliRunner().invoke(COMMANDS[command], arguments)
    if ended.exit_code or ended.stderr:
        return f"exit status {ended.exit_code}: {ended.stderr}"
    return re.sub("^(?=.)", "    ", ended.stdout, flags=re.MULTILINE)


def test_every_command_of_the_section_has_a_sample() -> None:
    assert kinds(COMMANDS_PAGE) == [
        "account --mechanism",
        "account --mechanism",
        "estimate k-rr",
        "estimate k-rr-pair",
        "estimate rappor",
        "plan --values",
    ]


def test_every_command_of_the_guide_to_parameters_has_a_sample() -> None:
    assert kinds(PARAMETERS) == [*["account --mechanism"] * 4, "check", *["plan --values"] * 2]


@pytest.mark.slow
def test_samples_match_the_output_of_their_commands() -> None:
    assert WITHOUT_FILES
    outputs = {line: printed(line) for line in WITHOUT_FILES}
    wrong = [f"{line}\n{outputs[line]}" for line, shown in WITHOUT_FILES.items() if outputs[line] != shown]
    assert wrong == [], "\n".join(wrong)


def test_check_prints_this_for_the_shown_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = re.findall("```yaml\n(.*?)```", PARAMETERS, re.DOTALL)
    (tmp_path / "deniable.yaml").write_text(file, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert printed("check") == samples(PARAMETERS)["check"]


def test_sample_of_a_pair_matches_for_the_counts_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = re.findall(r"`(\d+,\d+,\d+)`", COMMANDS_PAGE)
    (tmp_path / "pairs.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    (line,) = (line for line in SAMPLES if line.startswith("estimate k-rr-pair"))
    assert printed(line) == SAMPLES[line]


def test_sample_with_files_has_the_last_words_of_its_command() -> None:
    """It screens 100,000 candidates; the figures depend on files that are not in the repository."""
    (sample,) = (shown for line, shown in SAMPLES.items() if line.startswith("estimate rappor"))
    assert re.search(
        r"^    other strings, and \d+ candidates not chosen: 0\.\d{6}, standard error 0\.\d{6}\n\Z",
        sample,
        re.MULTILINE,
    )


def test_links_have_existing_targets() -> None:
    links = [
        (page, file, heading)
        for page in PAGES
        for file, heading in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text("utf-8"))
    ]
    assert len(links) > len(PAGES)
    wrong = []
    for page, file, heading in links:
        target = page.parent / file if file else page
        if not target.exists() or (heading and heading not in headings(target)):
            wrong.append(f"{page.name}: {file}#{heading}")
    assert wrong == [], "\n".join(wrong)


def test_cited_evidence_exists() -> None:
    folders = "tests|bench|estimators|producers|aggregator|deploy|docs"
    cited = [
        (page.name, name)
        for page in PAGES
        for name in re.findall(rf"`((?:{folders})/[\w/.-]+)`", page.read_text("utf-8"))
    ]
    assert len(cited) > len(PAGES)
    wrong = [f"{page}: {name}" for page, name in cited if not (REPOSITORY / name).exists()]
    assert wrong == [], "\n".join(wrong)


@cache
def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub names them."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


def test_readme_is_read_in_ten_minutes() -> None:
    assert len(README.splitlines()) <= 250
    assert len(README.split()) <= 2200


def test_index_lists_every_page() -> None:
    listed = set(re.findall(r"\]\(([^)#]+\.md)\)", (DOCS / "README.md").read_text(encoding="utf-8")))
    assert listed == {page.name for page in DOCS.glob("*.md")} - {"README.md"}


def test_first_file_of_readme_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = re.findall("```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "deniable.yaml").write_text(file, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "one report: epsilon 2\n" in printed("check")


def test_commands_of_readme_exist() -> None:
    commands = set(re.findall(r"^    deniable ([a-z]+)", README, re.MULTILINE))
    assert commands
    assert sorted(commands - LISTED.keys()) == []
