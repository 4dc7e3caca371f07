"""The table and the samples of docs/shuffling.md match the accountant and the commands."""

import re
import shlex

import pytest
from click.testing import CliRunner

from deniable.deploy.offline.account import account
from deniable.deploy.offline.plan import plan_command
from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.planning import best_bloom, best_one_hot
from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "shuffling.md").read_text(encoding="utf-8")
COMMANDS = {"account": account, "plan": plan_command}
SAMPLES = re.findall(r"^    \$ deniable (\w+) (.*)\n((?:    .*\n)+)", PAGE, re.MULTILINE)
NUMBERS = (1000, 10_000, 100_000, 1_000_000)


def rows() -> list[list[str]]:
    """Epsilon at delta 1e-6 of one report among n shuffled ones."""
    subjects: list[tuple[str, Mechanism]] = [
        ("k-RR of 2, epsilon 1", KRR.from_epsilon(2, 1.0)),
        ("k-RR of 16, epsilon 1", KRR.from_epsilon(16, 1.0)),
        ("k-RR of 16, epsilon 4", KRR.from_epsilon(16, 4.0)),
        ("k-RR of 1000, epsilon 4", KRR.from_epsilon(1000, 4.0)),
        ("one-hot RAPPOR, epsilon 1", best_one_hot(100, 1.0)),
        ("Bloom RAPPOR, fresh, epsilon 1", best_bloom(1.0)),
        ("local hashing, epsilon 1", LocalHash.from_epsilon(1.0)),
    ]
    return [
        [name, *(rounded_up(shuffled_epsilon(blanket_of(each), n, 1e-6).high) for n in NUMBERS)]
        for name, each in subjects
    ]


@pytest.mark.all
def test_the_table_matches_the_code() -> None:
    (table,) = re.findall(r"^<!-- table: shuffled -->\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table.splitlines()[2:] == [f"| {' | '.join(row)} |" for row in rows()]


@pytest.mark.slow
def test_samples_are_what_the_commands_print() -> None:
    assert {name for name, _, _ in SAMPLES} == set(COMMANDS)
    wrong = []
    for name, arguments, expected in SAMPLES:
        ended = CliRunner().invoke(COMMANDS[name], shlex.split(arguments))
        if [f"    {line}" for line in ended.output.splitlines()] != expected.splitlines():
            wrong.append(f"{name} {arguments}\n{ended.output}")
    assert wrong == [], "\n".join(wrong)
