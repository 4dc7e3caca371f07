"""One target under atheris: python -m tests.fuzz.engine TARGET FOLDER [options of libFuzzer].

Our modules are instrumented, so inputs that reach new branches are mutated further. Failing inputs are
written to FOLDER.
"""

import atexit
import json
import logging
import signal
import sys
import tempfile
from pathlib import Path

import atheris
import structlog

from tests.fuzz.targets import found, target_of

OURS = ["deniable", "tests.fuzz"]
MOST_BYTES = 4096
MOST_SECONDS = 60  # of one input


def main(name: str, folder: str, *options: str) -> None:
    """Fuzz until an input fails, or until the limit in the options."""
    with atheris.instrument_imports(include=OURS):
        target = target_of(name)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    corpus = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for number, seed in enumerate([*target.SEEDS, *(path.read_bytes() for path in found(name))]):
        (corpus / str(number)).write_bytes(seed)
    mutate = getattr(target, "mutate", None)
    # The engine's timer, which ticks every half of MOST_SECONDS, would end a process that is just exiting.
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
    atexit.register(lambda: print(json.dumps(getattr(target, "outcomes", {}))))  # noqa: T201

    def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
        return bytes(mutate(atheris.Mutate(data, most_bytes), seed)[:most_bytes])

    atheris.Setup(
        [
            "fuzz",
            f"-artifact_prefix={folder}/",
            f"-max_len={MOST_BYTES}",
            f"-timeout={MOST_SECONDS}",
            "-rss_limit_mb=4096",
            "-len_control=0",
            "-print_final_stats=1",
            *options,
            str(corpus),
        ],
        target.check,
        custom_mutator=mutated if mutate else None,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
