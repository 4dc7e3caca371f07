"""Throughput and memory of one worker on a log that is full before it starts."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import click

from bench.aggregator.deployments import RAPPOR_128, bytes_on_disk, configure, fill
from bench.aggregator.worker import (
    COUNTED,
    cpu_seconds,
    longest_delay,
    memory_mib,
    metrics_of,
    started,
    value_of,
)
from bench.sections import ResultRow, Section
from deniable.config.file import Configuration
from deniable.deploy.broker.broker import Broker

LEAST_SECONDS = 1.0  # a worker stores its counts twice a second
ABOUT = "One worker, a log that is full before it starts. Broker, worker and this process share the machine."
KRR = (
    "  - {{{{name: c{{number}}, mechanism: k-rr, size: {size}, other: false, epsilon: 2.0,\n"
    "     window_seconds: 86400, grace_seconds: 86400, budget: none}}}}\n"
)
ONE_HOT = (
    "  - {{{{name: c{{number}}, mechanism: rappor-one-hot, values: [{values}], f: 0.25, p: 0.35, q: 0.65,\n"
    "     window_seconds: 86400, grace_seconds: 86400, budget: none}}}}\n"
)


class ThroughputCase(NamedTuple):
    """Numbers of packs, of reports in each, and of collections."""

    name: str
    entry: str
    packs: int
    reports: int
    collections: int = 1


KRR_16, KRR_1000 = KRR.format(size=16), KRR.format(size=1000)
ONE_HOT_1000 = ONE_HOT.format(values=", ".join(f"v{number}" for number in range(1000)))
LOGS = (
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 6_000_000, 1),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 4_000_000, 10),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 1_200_000, 100),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 200_000, 1000),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 24_000, 10_000),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 150_000, 1000, 100),
    ThroughputCase("one-hot, 1000 values", ONE_HOT_1000, 12_000, 1000),
    ThroughputCase("k-RR, 16 values", KRR_16, 1_000_000, 1000),
    ThroughputCase("k-RR, 16 values", KRR_16, 200_000, 10_000),
    ThroughputCase("k-RR, 1000 values", KRR_1000, 600_000, 1000),
)


def measure(case: ThroughputCase, configuration: Configuration, folder: Path) -> ResultRow:
    """Fill the log, start a worker and follow its stored counts to the end of the log."""
    fill(configuration, case.packs, case.reports)
    log, text = folder / f"{configuration.kafka.topic_prefix}worker.log", ""
    stored: list[tuple[float, float, float]] = []
    with started(configuration, log) as worker:
        for moment, text in metrics_of(log):
            counted = value_of(text, COUNTED)
            if counted and (not stored or counted > stored[-1][1]):
                stored.append((moment, counted, cpu_seconds(worker)))
            if counted >= case.packs:
                break
        memory = memory_mib(worker, "VmHWM")
    (began, first, cpu_before), (ended, last, cpu_after) = stored[0], stored[-1]
    if (seconds := ended - began) < LEAST_SECONDS:
        raise click.ClickException(
            f"{case.packs:,} packs were stored in {seconds:.1f} s: too few to be timed"
        )
    packs_a_second, packs_a_cpu_second = (last - first) / seconds, (last - first) / (cpu_after - cpu_before)
    size = bytes_on_disk(configuration.kafka.bootstrap_servers, configuration.topics.reports)
    return {
        "mechanism": case.name,
        "reports a pack": case.reports,
        "collections": case.collections,
        "packs/s": round(packs_a_second),
        "reports/s": round(packs_a_second * case.reports),
        # Other load on the machine changes it little.
        "reports a CPU second": round(packs_a_cpu_second * case.reports),
        "bytes a report in the log": f"{size / case.packs / case.reports:.2f}",
        "worker at most, MiB": round(memory),
        "loop delay up to, s": longest_delay(text),
    }


def counting() -> Section:
    """Measure all kinds of logs."""
    rows: list[ResultRow] = []
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        for number, case in enumerate(LOGS):
            prefix = f"bench-{number}-"
            configuration = configure(
                Path(name), broker.bootstrap_servers, prefix, case.collections, case.entry
            )
            rows.append(measure(case, configuration, Path(name)))
    return Section(ABOUT, rows)


CASES = {"counting": counting}
