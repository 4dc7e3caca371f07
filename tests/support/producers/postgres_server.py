"""A real PostgreSQL server on loopback, in a folder of its own."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from tests.support.needed import missing
from tests.support.processes import new_port, wait_until

WHERE = "apt-get install postgresql"


def binaries() -> Path:
    """Return the folder of PostgreSQL's programs, else skip the test, or fail it in CI."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not versions:
        missing(f"PostgreSQL is missing: {WHERE}")
    return versions[-1].parent


class PostgresServer:
    """A server of one test, whose user `deniable` needs no password on loopback.

    Parameters
    ----------
    folder : of the server, readable by its user.

    Attributes
    ----------
    port : on 127.0.0.1.
    """

    def __init__(self, folder: Path) -> None:
        self._binaries = binaries()
        self._data = folder / "data"
        self._log = folder / "log"
        self.port = new_port()
        self._run(
            "initdb", "-D", str(self._data), "-U", "deniable", "-A", "trust", "-E", "UTF8", "--locale=C"
        )
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n"
            )
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", user: str = "deniable") -> str:
        """Return the address of a database, as in a collection file."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Create a database; return its address."""
        name = f"budgets_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """Execute a statement as the owner of all; return its rows."""
        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self, *settings: str) -> None:
        """Start it and wait until it answers.

        Parameters
        ----------
        settings : "name=value", of this run.
        """
        options = [part for each in settings for part in ("-c", each)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, *options],
                stdout=log,
                stderr=log,
                **_user(),
            )
        assert wait_until(self._answers, 60), self._log.read_text(encoding="utf-8")

    def kill(self) -> None:
        """End the server and its sessions by SIGKILL."""
        assert self._process is not None
        self._signal(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Stop every process of the server: connections stay open, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue after `pause`."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End the server, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGQUIT)  # without the checkpoint of an orderly end
            self._process.wait(60)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the server, then its children: each leads a process group of its own."""
        assert self._process is not None
        server = self._process.pid
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        os.kill(server, number)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), number)

    def _answers(self) -> bool:
        asked = subprocess.run(
            [self._binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
        )
        return asked.returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._binaries / program, *arguments], capture_output=True, text=True, check=False, **_user()
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server within the block."""
    folder = Path(tempfile.mkdtemp(prefix="deniable-postgres-"))
    try:
        if user := _user():
            os.chown(folder, user["user"], user["group"])
        server = PostgresServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _user() -> dict[str, Any]:
    """Return who runs the server: PostgreSQL refuses to run as root."""
    return {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
