"""The embedded broker: a real Apache Kafka, one node, on loopback."""

import os
import signal
from pathlib import Path
from types import TracebackType
from typing import Self

from deniable.deploy.broker.child_processes import Child, last_lines, signal_group, stop
from deniable.deploy.broker.errors import BrokerError
from deniable.deploy.broker.jars import fetch_jars, find_java
from deniable.deploy.broker.locked_folder import HeldFolder
from deniable.deploy.broker.ports import free_port, require_free
from deniable.deploy.broker.process import (
    LOG_NAME,
    format_once,
    new_cluster_id,
    run_broker,
    wait_until_it_answers,
    write_settings,
)

START_SECONDS = 60.0
STOP_SECONDS = 20.0
PORT_ATTEMPTS = 3


class Broker:
    """A Kafka broker that ends with this process, however that ends. Start it from the main thread.

    Parameters
    ----------
    data_dir : folder that keeps the data for a later broker; None: a temporary one, deleted at the end.
    port : the clients' port; 0 for a free one, which stays the same for this object.
    own_session : True to keep signals to this process's group, such as Ctrl-C, from the broker.
    """

    def __init__(self, data_dir: Path | None = None, port: int = 0, own_session: bool = True) -> None:
        self._own_session = own_session
        self._data_dir = data_dir
        self._port = port
        self._folder: HeldFolder | None = None
        self._child: Child | None = None
        # A subclass with other settings overrides how to format its folder and how to connect.
        self._format_arguments = ["--standalone", f"--cluster-id={new_cluster_id()}"]
        self._client_settings: dict[str, object] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect, `127.0.0.1:PORT`."""
        return f"127.0.0.1:{self._port}"

    @property
    def folder(self) -> Path | None:
        """The data folder; None before `start` and after `stop`."""
        return self._folder.path if self._folder else None

    @property
    def child(self) -> Child | None:
        """The broker's process; None before `start` and after `stop`."""
        return self._child

    def start(self) -> str:
        """Start the broker and wait until it answers a client; return where clients connect.

        After `kill` it comes back on the same port with the same data. Does nothing while it runs.

        Raises
        ------
        BrokerError if the port is in use, Java or Maven is missing, or the broker does not answer within 60 s
        (with the last lines of its log); FolderError if the data folder cannot be used. Nothing is left
        running then.
        """
        if self._child is not None and self._child.poll() is None:
            return self.bootstrap_servers
        try:
            java, libs = find_java(), fetch_jars()
            self._folder = self._folder or HeldFolder(self._data_dir)
            self._come_up(self._folder.path, java, libs)
        except BaseException:
            self.stop()
            raise
        return self.bootstrap_servers

    def stop(self) -> None:
        """Send SIGTERM, after 20 s SIGKILL, and release the folder. Calling it again does nothing."""
        if self._child is not None:
            stop([self._child], STOP_SECONDS)
            self._child = None
        if self._folder is not None:
            self._folder.release()
            self._folder = None

    def wait(self) -> None:
        """Wait until the broker ends by itself, then raise BrokerError with the last lines of its log."""
        if self._child is None or self._folder is None:
            raise BrokerError("Kafka is not running: start it first")
        status = self._child.wait()
        raise BrokerError(
            f"Kafka ended by itself with status {status}; its last lines:\n"
            f"{last_lines(self._folder.path / LOG_NAME)}"
        )

    def kill(self) -> None:
        """Send SIGKILL; the folder stays, and `start` brings the broker back."""
        self._signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait()

    def pause(self) -> None:
        """Suspend the process: connections stay open and nothing answers, until `resume`."""
        self._signal(signal.SIGSTOP)
        if self._child is not None and self._child.returncode is None:
            # On a busy machine its threads run on for a while.
            os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Continue a paused broker."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            signal_group(self._child, number)

    def _configure(self, folder: Path, port: int) -> None:
        write_settings(folder, port, controller_port=free_port(but=port))

    def _come_up(self, folder: Path, java: str, libs: Path) -> None:
        """Start on free ports; try others if another process takes one first."""
        status, log_end, log_file = None, "", folder / LOG_NAME
        log_file.touch()
        for _attempt in range(PORT_ATTEMPTS):
            port = self._port or free_port()
            require_free(port)
            self._configure(folder, port)
            format_once(folder, java, libs, self._format_arguments)
            log_start = log_file.stat().st_size
            self._child = run_broker(folder, java, libs, self._own_session)
            if wait_until_it_answers(self._child, folder, port, START_SECONDS, self._client_settings):
                self._port = port
                return
            status = self._child.poll()
            log_end = last_lines(log_file, log_start)
            if "Address already in use" not in log_end:
                break
        late = f"did not answer within {START_SECONDS:g} s"
        why = late if status is None else f"ended with status {status}"
        raise BrokerError(f"Kafka {why} when it was started; the end of {log_file}:\n{log_end}")
