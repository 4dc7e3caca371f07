"""A real S3 server on loopback, the gateway of Versity, and what is between it and a client."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from deniable.deploy.broker.child_processes import last_lines, spawn, stop
from tests.support.needed import tool
from tests.support.processes import new_port, wait_until

KEY, SECRET, REGION, BUCKET = "deniable", "loopback-only", "us-east-1", "exports"


class S3Server(NamedTuple):
    """A running server with a bucket.

    Parameters
    ----------
    address : its host and port.
    folder : of its objects.
    """

    address: str
    folder: Path

    def prefix(self) -> str:
        """Return the URL of an empty prefix."""
        return f"s3://{BUCKET}/of/{uuid4().hex}"

    def variables(self, address: str | None = None) -> dict[str, str]:
        """Return what an exporter's environment needs; `address` of a relay in between."""
        return {
            "AWS_ENDPOINT_URL": f"http://{address or self.address}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
        }

    def files(self) -> Any:
        """Return the bucket as a reader sees it: Arrow's own client, not the exporter's."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region=REGION,
            scheme="http",
            endpoint_override=self.address,
            allow_bucket_creation=True,
        )

    def names(self, url: str) -> list[str]:
        """Return the files of an export, as BUCKET/KEY."""
        return sorted(name for name, *_ in self.sizes(url))

    def sizes(self, url: str) -> set[tuple[str, int, int]]:
        """Return name, bytes and time of each file: another set once one was replaced by a longer one."""
        from pyarrow.fs import FileSelector

        chosen = FileSelector(url.removeprefix("s3://"), recursive=True, allow_not_found=True)
        found = self.files().get_file_info(chosen)
        return {(each.path, each.size, each.mtime_ns) for each in found if each.is_file}

    def content(self, name: str) -> bytes:
        """Return a file, BUCKET/KEY, by one request: Arrow sends several, between which it may change."""
        from obstore import get
        from obstore.store import S3Store

        bucket, _, key = name.partition("/")
        store = S3Store(
            bucket,
            endpoint=f"http://{self.address}",
            client_options={"allow_http": True},
            access_key_id=KEY,
            secret_access_key=SECRET,
            region=REGION,
        )
        return bytes(get(store, key).bytes())


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run a server within the block; its objects are in the folder."""
    program = tool("versitygw", "go install github.com/versity/versitygw/cmd/versitygw", "NO_VERSITYGW")
    objects, log = folder / "objects", folder / "versitygw.log"
    objects.mkdir()
    address = f"127.0.0.1:{new_port()}"
    options = ["--access", KEY, "--secret", SECRET, "--region", REGION, "--port", address]
    command = [program, *options, "posix", str(objects)]
    child = spawn(command, log, folder=folder)
    server = S3Server(address, objects)
    try:
        assert wait_until(lambda: _listens(address), 30), last_lines(log)
        server.files().create_dir(BUCKET)
        yield server
    finally:
        stop([child])


class HeldUpload:
    """A relay to a server that holds the first upload of a table: on its way, or half of it.

    Parameters
    ----------
    server : to relay to.
    half : True to forward the first half of the upload, False nothing of it, until `deliver`.

    Attributes
    ----------
    address : host and port to connect to.
    held : set once the client has sent the whole upload, or half of it was forwarded.
    """

    def __init__(self, server: S3Server, *, half: bool) -> None:
        self._server = server
        self._half = half
        self.held = threading.Event()
        self._request = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._socket.close()

    def deliver(self) -> bytes:
        """Send what was held to the server, as a slow network would, and return its answer's first line."""
        with closing(_connected(self._server.address)) as connection:
            connection.sendall(self._request)
            return connection.makefile("rb").readline()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with (
            suppress(OSError, ValueError),
            closing(client),
            closing(_connected(self._server.address)) as server,
        ):
            threading.Thread(target=_pump, args=(server, client), daemon=True).start()
            with client.makefile("rb") as requests:
                while request := _next_request(requests):
                    if (
                        not self.held.is_set()
                        and request.startswith(b"PUT ")
                        and b"/collection" in request[:200]
                    ):
                        self._request = request
                        if self._half:
                            server.sendall(
                                request[: len(request) - len(request.partition(b"\r\n\r\n")[2]) // 2]
                            )
                        self.held.set()
                        requests.read()  # until the client is killed
                        return
                    server.sendall(request)


def _next_request(requests: Any) -> bytes:
    """Return head and body of an HTTP request, nothing at the end of the connection."""
    head = b""
    length = 0
    while line := requests.readline():
        head += line
        name, _, text = line.lower().partition(b":")
        if name == b"content-length":
            length = int(text)
        if line == b"\r\n":
            return head + bytes(requests.read(length))
    return b""


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError, ValueError):
        while content := source.recv(1 << 16):
            target.sendall(content)


def _connected(address: str) -> socket.socket:
    host, _, port = address.partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def _listens(address: str) -> bool:
    try:
        _connected(address).close()
    except OSError:
        return False
    return True
