"""The demo's collection file, and the processes that work on it."""

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import msgspec

from deniable.cluster.cluster import Cluster
from deniable.cluster.security import field_types
from deniable.config.file import SECRET_VARIABLES, Configuration, load
from deniable.config.sections import SECRETS
from deniable.deploy.broker.child_processes import Child, deniable_command, last_lines, spawn
from deniable.deploy.demo.flights import AIR_MINUTES, Flights
from deniable.estimators.errors import DeniableError
from deniable.protocol.secrets.secret import NEW_SECRET_BYTES

START_SECONDS = 30.0
#: Of a report of `destination`, so that both ways to ask for the airport can be compared.
DESTINATION_EPSILON = 1.8313

COLLECTION_FILE = """\
revision: 1
kafka: {kafka}
producer: {{pack_seconds: 0.5, secret_file: secret}}
edge: {{uploads_per_minute: 0}}
relay: {{shuffle_reports: 100, idle_seconds: 0.5, delivery_seconds: 5}}
collections:
  - {{name: carrier, mechanism: k-rr, values: [{carriers}], other: false, epsilon: 1.0986122886681098,
     window_seconds: 5, grace_seconds: 10, minimum_reports: 5000,
     budget: {{epsilon: 4, delta: 1e-6, period_seconds: 86400}}}}
  - {{name: destination, mechanism: rappor, bits: 128, hashes: 2, cohorts: 8, f: 0.25, p: 0.35, q: 0.65,
     candidates_file: airports.txt, window_seconds: 5, grace_seconds: 10, minimum_reports: 5000,
     budget: {{epsilon: 8, delta: 1e-6, period_seconds: 2592000, values: unchanged}}}}
  - {{name: destination-hashed, mechanism: local-hash, epsilon: {same_epsilon}, candidates_file: airports.txt,
     window_seconds: 5, grace_seconds: 10, minimum_reports: 5000,
     budget: {{epsilon: 8, delta: 1e-6, period_seconds: 2592000}}}}
  - {{name: destination-found, mechanism: prefix-tree, epsilon: 4, lengths: [2, 3], grow: {{windows: 4}},
     alphabet: ABCDEFGHIJKLMNOPQRSTUVWXYZ, window_seconds: 5, grace_seconds: 10, minimum_reports: 5000,
     budget: {{epsilon: 8, delta: 1e-6, period_seconds: 86400}}}}
  - {{name: carrier-origin, mechanism: k-rr-pair, epsilon: 4,
     fields: [{{name: carrier, values: [{carriers}], other: false}},
       {{name: origin, values: [{origins}], other: false}}],
     window_seconds: 5, grace_seconds: 10, minimum_reports: 5000,
     budget: {{epsilon: 8, delta: 1e-6, period_seconds: 86400}}}}
  - {{name: air-time, mechanism: number, minimum: -0.5, maximum: {last_minute}, steps: {steps}, epsilon: 2,
     window_seconds: 5, grace_seconds: 10, minimum_reports: 5000,
     budget: {{epsilon: 4, delta: 1e-6, period_seconds: 86400}}}}
  - {{name: canary, mechanism: k-rr, size: 4, other: false, epsilon: 2, canary: true,
     window_seconds: 5, grace_seconds: 10, minimum_reports: 10000,
     budget: {{epsilon: 4, delta: 1e-6, period_seconds: 86400}}}}
"""


class DemoError(DeniableError, RuntimeError):
    """The demo's results are not as promised; the message says what is wrong."""


def configure(folder: Path, cluster: Cluster, flights: Flights) -> Configuration:
    """Write the demo's collection file, with a new topic prefix so that demos can share a broker."""
    secret = folder / "secret"  # deleted with the folder
    secret.touch(mode=0o600)
    secret.write_bytes(os.urandom(NEW_SECRET_BYTES))
    candidates = sorted({*flights.destinations, *flights.decoys})
    (folder / "airports.txt").write_text("\n".join(candidates), encoding="utf-8")
    file = folder / "deniable.yaml"
    carriers, origins = _listed(flights.carriers), _listed(flights.origins)
    prefix = f"deniable-demo-{uuid4().hex[:8]}-"
    file.write_text(
        COLLECTION_FILE.format(
            kafka=json.dumps(_kafka(cluster, prefix)),
            carriers=carriers,
            origins=origins,
            same_epsilon=DESTINATION_EPSILON,
            last_minute=AIR_MINUTES - 0.5,
            steps=AIR_MINUTES // 3,  # three whole minutes each, none at its edge
        ),
        encoding="utf-8",
    )
    return load(file, environment={name: os.environ[name] for name in SECRET_VARIABLES if name in os.environ})


def _listed(codes: Iterable[str]) -> str:
    return ", ".join(f'"{code}"' for code in sorted(set(codes)))


def _kafka(cluster: Cluster, prefix: str) -> dict[str, object]:
    """Build the section `kafka`; a password stays in the environment, which workers inherit."""
    section: dict[str, object] = {"bootstrap_servers": cluster.bootstrap_servers, "topic_prefix": prefix}
    if cluster.security is None:
        return section | {"allow_plaintext": cluster.allow_plaintext}
    given = vars(cluster.security) | msgspec.to_builtins(cluster.security.login, enc_hook=str)
    shown = {
        name: str(given[name]) if isinstance(given[name], Path) else given[name]
        for name in field_types()
        if given.get(name) is not None and name not in SECRETS
    }
    return section | {"security": shown}


def start(configuration: Configuration, log: Path, command: str, *options: str) -> Child:
    """Start a command on the collection file, which ends with this process and writes to `log`."""
    return spawn(deniable_command(command, "--config", str(configuration.path), *options), log)


def rollup_command(configuration: Configuration, collection: str, start: int) -> str:
    """Return the command that estimates over all windows of a collection since `start`, unix seconds."""
    arguments = ["rollup", collection, "--config", str(configuration.path), "--from", str(start)]
    return shlex.join([_program(), *arguments])


def _program() -> str:
    """Return how to call `deniable` here: by name, or by path if the environment is not in PATH."""
    beside = Path(sys.executable).with_name("deniable")
    return "deniable" if shutil.which("deniable") or not beside.exists() else os.path.relpath(beside)


def announced(child: Child, log: Path, what: str) -> str:
    """Wait until a process prints the line `what: ADDRESS`; return the address."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(f"{what}: "):
                return line.removeprefix(f"{what}: ")
        time.sleep(0.1)
    raise DemoError(f"demo: failed\na process did not start:\n{last_lines(log)}")
