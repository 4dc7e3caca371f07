"""The table of benchmarks: where their cases are, what page cites them, and how long they take."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import click


class Part(NamedTuple):
    """The cases of a module.

    Parameters
    ----------
    name : `make bench ARGS=name` measures it.
    group : of parts that `make bench-GROUP` measures together.
    module : its CASES are functions that measure and return a `Section`, by the sections' names.
    file : of its sections in bench/results, without ending; "" if the page holds the figures itself.
    page : that cites the file or the command.
    minutes : it takes, about, on two cores.
    in_bench : cases that `make bench` measures, with their minutes.
    after : a module whose `main` makes a page or a picture from what is stored.
    """

    name: str
    group: str
    module: str
    file: str
    page: str
    minutes: float
    in_bench: Mapping[str, float] = MappingProxyType({})
    after: str = ""


SPEED, SIZING, COVERAGE, CHANGES = "docs/speed.md", "docs/sizing.md", "docs/coverage.md", "docs/changes.md"
TABLES, PICTURE = "bench.aggregator.sizing", "bench.estimators.conditional.picture"
BESIDE, CALL = "what applications call today", "a call alone"


def _beside(name: str, group: str, module: str, minutes: float, **in_bench: float) -> Part:
    return Part(name, group, f"bench.comparison.{module}", "speed", SPEED, minutes, in_bench)


def _worker(name: str, module: str, minutes: float) -> Part:
    return Part(name, "aggregator", f"bench.{module}", "aggregator", SIZING, minutes, after=TABLES)


def _device(name: str, minutes: float) -> Part:
    return Part(name, "devices", f"bench.devices.{name}", "devices", SPEED, minutes)


def _estimates(name: str, module: str, file: str, page: str, minutes: float, after: str = "") -> Part:
    return Part(name, "estimators", f"bench.estimators.{module}", file, page, minutes, after=after)


PARTS = (
    _beside("recording", "recording", "recording", 6, **{BESIDE: 1, CALL: 1}),
    _beside("clients", "recording", "clients", 4, clients=4),
    _beside("counting", "counting", "counting", 1, counting=1),
    _beside("estimation", "estimation", "estimation", 1, estimation=1),
    _beside("decoding", "estimation", "decoding.decoding", 3, decoding=1),
    _beside("streaming", "streaming", "streaming.end_to_end", 27, **{"packs of 1,000": 9}),
    _worker("throughput", "aggregator.throughput", 5),
    _worker("in_memory", "aggregator.in_memory", 1),
    _worker("memory", "aggregator.memory", 3),
    _worker("opening", "aggregator.scale.opening", 4),
    _worker("partitions", "aggregator.scale.partitions", 9),
    _worker("delays", "comparison.streaming.delays", 9),
    _worker("collections", "aggregator.scale.collections", 3),
    _worker("candidates", "aggregator.candidates", 1),
    _worker("large_domain", "aggregator.large_domain", 2),
    _worker("windows", "aggregator.scale.windows", 9),
    _device("edge", 4),
    _device("relay", 2),
    _device("browser", 4),
    _estimates("conditional", "conditional.table", "conditional_coverage", COVERAGE, 600, PICTURE),
    _estimates("coverage", "coverage", "coverage", COVERAGE, 1),
    _estimates("poster", "poster", "coverage", "docs/commands.md", 1),
    _estimates("text_coverage", "text_coverage", "text_coverage", COVERAGE, 300),
    _estimates("hash_variance", "hash_variance", "text_coverage", COVERAGE, 3),
    _estimates("number_coverage", "numbers.number_coverage", "numbers", COVERAGE, 300),
    _estimates("number_ends", "numbers.number_ends", "numbers", "docs/limits.md", 1),
    _estimates("number_methods", "numbers.number_methods", "numbers", COVERAGE, 12),
    _estimates("published_reports", "numbers.published_reports", "numbers", COVERAGE, 1),
    _estimates("quantile_roots", "numbers.quantile_roots", "numbers", COVERAGE, 9),
    _estimates("pairs", "pairs.coverage", "pairs", COVERAGE, 30),
    _estimates("pair_mechanisms", "pairs.mechanisms", "pairs", "docs/decisions.md", 0.1),
    _estimates("pair_costs", "pairs.costs", "pairs", "docs/estimates.md", 0.1),
    _estimates("anytime", "changes.anytime", "changes", CHANGES, 4),
    _estimates("alarms", "changes.alarms", "changes", CHANGES, 60),
    _estimates("mean_sequence", "changes.mean_sequence", "changes", CHANGES, 1),
    _estimates("top_strings", "growth.top_strings", "strings", "docs/finding.md", 10),
    _estimates("ngrams", "growth.ngrams", "strings", "docs/finding.md", 0.1),
    Part("poisoning", "poisoning", "bench.poisoning.poisoning", "poisoning", "docs/poisoning.md", 5),
    Part("analysis", "analysis", "bench.analysis", "analysis", "docs/analysis.md", 5),
    Part("page", "page", "bench.aggregator.page", "page", "docs/page.md", 4),
    Part("installed", "installed", "bench.producers.installed", "", "docs/dependencies.md", 5),
    Part("postgres", "postgres", "bench.producers.shared_budgets", "shared_budgets", "docs/replicas.md", 5),
)


def chosen(names: Sequence[str]) -> list[Part]:
    """Return the parts of these names or groups, or those of `make bench`; click.UsageError if unknown."""
    known = {each.name for each in PARTS} | {each.group for each in PARTS}
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"no part is called {unknown[0]!r}; there are {', '.join(sorted(known))}")
    return [each for each in PARTS if (each.name in names or each.group in names if names else each.in_bench)]
