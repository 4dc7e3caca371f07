"""Recording rules and alerts: promtool runs their unit tests, and each has what its reader needs."""

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from deniable.deploy.cli.commands import COMMANDS
from deniable.deploy.monitoring.metrics_table import METRICS
from deniable.estimators.detectors.fit import LIMIT
from tests.support.deploy.promql import samples
from tests.support.needed import but_for, missing
from tests.support.paths import REPOSITORY

RULES = REPOSITORY / "deploy" / "monitoring" / "prometheus"
RUNBOOK = REPOSITORY / "docs" / "runbook.md"
UNIT_TESTS = sorted((REPOSITORY / "tests" / "deploy" / "monitoring" / "prometheus").glob("*.yml"))

LABELS = {name: set(labels) - {"job"} for name, labels in samples(METRICS).items()}
FROM_SCRAPES = {"job", "instance"}


def read(file: Path) -> Any:
    return YAML(typ="safe").load(file.read_text(encoding="utf-8"))


def rules(file: str, kind: str) -> dict[str, dict[str, Any]]:
    return {rule[kind]: rule for group in read(RULES / file)["groups"] for rule in group["rules"]}


RECORDED, ALERTS = rules("recording.yml", "record"), rules("alerts.yml", "alert")
EXPRESSIONS = {name: rule["expr"] for name, rule in (RECORDED | ALERTS).items()}


def promtool(*arguments: str | Path) -> str:
    """What promtool says; the test fails with it if promtool finds fault."""
    program = shutil.which("promtool")
    if program is None:
        missing("promtool is missing: it is in Debian's package prometheus")
    ran = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def names_in(expression: str) -> set[str]:
    """Metrics that an expression names, recorded ones included."""
    return set(re.findall(r"\b(?:\w+:)?deniable_[\w:]+", expression))


def matched_in(expression: str) -> list[tuple[str, str]]:
    """Each metric and label that a selector of an expression matches on."""
    selectors = re.findall(r"((?:\w+:)?deniable_[\w:]+)\{([^}]*)\}", expression)
    return [(name, label) for name, matchers in selectors for label in re.findall(r"(\w+)\s*[=!]", matchers)]


def grouped_in(expression: str) -> set[str]:
    """Labels that an expression aggregates or joins by."""
    lists = re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", expression)
    return {label for labels in lists for label in re.findall(r"\w+", labels)}


def levels(recorded: str) -> set[str]:
    """Labels of a recorded series: its name begins with them, `job_partition:…`."""
    return set(recorded.split(":")[0].split("_"))


def labels_of(name: str) -> set[str]:
    return levels(name) if name in RECORDED else LABELS[name] | FROM_SCRAPES


def test_promtool_finds_nothing_wrong() -> None:
    message = promtool("check", "rules", RULES / "recording.yml", RULES / "alerts.yml")
    assert f"{len(RECORDED)} rules found" in message
    assert f"{len(ALERTS)} rules found" in message


#: Those of hours take promtool seconds.
LONG = {"canaries.yml", "devices.yml", "estimates.yml"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    but_for([file for file in UNIT_TESTS if file.name not in LONG], UNIT_TESTS, pytest.mark.all),
    ids=lambda file: file.name,
)
def test_rules_do_what_their_unit_tests_say(file: Path) -> None:
    promtool("test", "rules", file)


def test_every_file_of_unit_tests_is_run() -> None:
    assert len(UNIT_TESTS) >= 5
    assert {file.name for file in UNIT_TESTS} > LONG


@pytest.mark.slow
def test_alerts_are_tested_both_ways_and_records_once() -> None:
    """Both ways: a moment at which it fires, and one at which it does not."""
    fires = defaultdict(set)
    values = set()
    for group in (group for file in UNIT_TESTS for group in read(file)["tests"]):
        for case in group.get("alert_rule_test", []):
            fires[case["alertname"]].add(bool(case["exp_alerts"]))
        for case in group.get("promql_expr_test", []):
            values |= {case["expr"]} if case["exp_samples"] else set()
    assert fires == {name: {True, False} for name in ALERTS}
    assert set(RECORDED) <= values


def test_alerts_name_problem_and_runbook() -> None:
    def is_right(name: str, alert: dict[str, Any]) -> bool:
        shown = alert["annotations"]
        return bool(
            alert["labels"]["severity"] in {"critical", "warning"}
            and "$value" in shown["description"]
            and shown["summary"]
            and shown["runbook_url"] == f"docs/runbook.md#{name.lower()}"
        )

    assert ALERTS
    wrong = [name for name, alert in ALERTS.items() if not is_right(name, alert)]
    assert wrong == [], "\n".join(wrong)


def test_runbook_has_one_paragraph_for_each_alert() -> None:
    sections = RUNBOOK.read_text(encoding="utf-8").split("\n## ")
    paragraphs = [section for section in sections if section.startswith("Deniable")]
    assert [paragraph.split("\n")[0] for paragraph in paragraphs] == list(ALERTS)
    for paragraph in paragraphs:
        assert re.findall(r"^\*\*(\w+)\.\*\*", paragraph, re.MULTILINE) == [
            "Means",
            "Look",
            "Do",
            "Threshold",
        ]


def test_rules_use_metrics_and_labels_that_exist() -> None:
    def is_right(expression: str) -> bool:
        used = names_in(expression)
        return (
            set() < used <= LABELS.keys() | RECORDED.keys()
            and all(label in labels_of(metric) for metric, label in matched_in(expression))
            and grouped_in(expression) <= set().union(*map(labels_of, used))
        )

    assert EXPRESSIONS
    wrong = [name for name, expression in EXPRESSIONS.items() if not is_right(expression)]
    assert wrong == [], "\n".join(wrong)


def test_counts_contradict_for_the_alert_where_tables_say_so() -> None:
    assert float(EXPRESSIONS["DeniableCountsContradict"].split(" < ")[1]) == LIMIT


def test_recorded_series_are_named_after_their_labels() -> None:
    assert RECORDED
    wrong = [name for name in RECORDED if levels(name) != grouped_in(EXPRESSIONS[name])]
    assert wrong == [], "\n".join(wrong)


def test_the_runbook_names_metrics_and_commands_that_exist() -> None:
    text = RUNBOOK.read_text(encoding="utf-8")
    assert names_in(text) <= {*RECORDED, *LABELS, *(metric.exposed for metric in METRICS)}
    assert set(re.findall(r"`deniable (\w+)", text)) <= COMMANDS.keys()
