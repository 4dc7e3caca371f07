"""Run programs of peers that read a full log, as child processes in the peers' environment."""

import json
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from bench.comparison.streaming.full_log import FullLog
from bench.comparison.timing.peer_environment import PYTHON
from bench.sections import ROOT
from deniable.deploy.broker.child_processes import last_lines, spawn, stop

WAIT_SECONDS = 180.0
ANSWER = '{"packs": '


class ReaderError(RuntimeError):
    """A peer's program failed or returned wrong counts; the message says how."""


class PeerStretch(NamedTuple):
    """Packs, seconds and processor time (all threads) of a peer, from its first packs to 9/10 of the log."""

    packs: float
    seconds: float
    cpu_seconds: float


def read(program: str, log: FullLog, folder: Path) -> PeerStretch:
    """Let a program of `runners` read a log, and check its counts if it returns any.

    Raises
    ------
    ReaderError if it fails or takes too long, or its counts are wrong.
    """
    log_file = folder / f"{log.configuration.kafka.topic_prefix}{program}.log"
    log_file.unlink(missing_ok=True)
    topic, servers = log.configuration.topics.reports, log.configuration.kafka.bootstrap_servers
    arguments = [servers, topic, str(log.packs), mkdtemp(dir=folder, prefix=program)]
    child = spawn([PYTHON, "-m", f"bench.comparison.runners.{program}", *arguments], log_file, folder=ROOT)
    try:
        child.wait(WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        raise ReaderError(f"not done in {WAIT_SECONDS:.0f} s") from None
    finally:
        stop([child])
    if child.returncode:
        raise ReaderError(last_lines(log_file, count=1) or f"status {child.returncode}")
    return answer_in(log_file.read_text(encoding="utf-8"), log)


def answer_in(text: str, log: FullLog) -> PeerStretch:
    """Parse a program's last line of JSON, ignoring its other output.

    Raises
    ------
    ReaderError if there is none, or its counts differ from those of the log.
    """
    lines = [line for line in text.splitlines() if line.startswith(ANSWER)]
    if not lines:
        raise ReaderError("it printed no result")
    answer = json.loads(lines[-1])
    if "counts" in answer:
        counts = {int(cohort): bits for cohort, bits in answer["counts"].items()}
        expected = log.counts()
        wrong = [cohort for cohort in expected if counts.get(cohort) != expected[cohort]]
        if wrong or counts.keys() != expected.keys():
            raise ReaderError(f"its counts are wrong in {len(wrong)} of {len(expected)} cohorts")
    if answer["packs"] <= 0 or answer["seconds"] <= 0:
        raise ReaderError("it read all at once: nothing could be timed")
    return PeerStretch(answer["packs"], answer["seconds"], answer["cpu_seconds"])
