"""A prefix of a bucket of an S3-compatible store, `s3://BUCKET/PREFIX`.

Rule 1: a file is one PUT, which S3 shows as a whole or not at all, whatever is killed.
Rule 2: it is put on condition that its ETag is still the one that was read (If-Match, or If-None-Match for a
new file). So a request that outlives its process, or another export, never undoes what was written since.
Rule 3: nobody can hold a lock there, so the newest export takes over: its name is in the object `exporter`,
which each export reads before it writes, and ends if the name is not its own.
"""

import html
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from deniable.analysis.errors import AnalysisError, arrow, needed
from deniable.analysis.export.bucket_address import SCHEME, bucket_and_prefix, check_endpoints
from deniable.analysis.tables.file_formats import read_table, write_table

EXPORTER = "exporter"
FILES = "collection=*/day=*/*"
REMEDY = "pip install 'deniable[s3]'"
# A file of hundreds of megabytes on a slow line; whether to use TLS is for the endpoint to say.
OPTIONS = {"timeout": timedelta(minutes=5), "allow_http": True}
RETRIES = {
    "backoff": {"init_backoff": timedelta(seconds=0.5), "max_backoff": timedelta(seconds=10), "base": 2},
    "max_retries": 60,
    "retry_timeout": timedelta(minutes=1),
}
# A wrong address or key shows at the first request: of a few bytes, and repeated for seconds only.
FIRST_OPTIONS = {**OPTIONS, "timeout": timedelta(seconds=10)}
FIRST_RETRIES = {**RETRIES, "retry_timeout": timedelta(seconds=3)}

MOST_CHARACTERS = 300
#: What the client's text has where no connection came about, and what that means.
CAUSES = (
    (r"ConnectionRefused", "connection refused"),
    (r"dns error", "the name of the host is not known"),
    (r"InvalidContentType|InvalidMessage", "the server does not speak TLS; is the endpoint one of http://"),
    (r"InvalidCertificate|UnknownIssuer|CertificateError", "the certificate of the server is not trusted"),
    (r"AlertReceived|HandshakeFailure", "the server ended the TLS handshake"),
    (r"TimedOut|operation timed out", "no answer in time"),
    (r"ConnectionReset|IncompleteMessage|UnexpectedEof", "the server closed the connection"),
    (r"NetworkUnreachable|HostUnreachable", "the host cannot be reached"),
)


def reason_of(text: str) -> str:
    """Return the cause in one line, at most 300 characters.

    Parameters
    ----------
    text : of an exception of obstore.
    """
    address = re.search(r"(?:performing \w+ |uri: Some\(\s*)(https?://[^\s,]+)", text)
    place = "" if address is None else "{0.scheme}://{0.netloc}".format(urlsplit(address[1]))
    if place == "http://169.254.169.254":
        return "there are no credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor of this machine"
    code, message = (re.search(rf"<{name}>([^<]*)</{name}>", text) for name in ("Code", "Message"))
    if code is not None:
        parts = [html.unescape(each[1]).strip().rstrip(".") for each in (code, message) if each is not None]
        return " ".join(": ".join(each for each in parts if each).split())[:MOST_CHARACTERS]
    for pattern, words in CAUSES:
        if re.search(pattern, text):
            return f"{place}: {words}" if place else words
    status = re.search(r"non-2xx status code: (\d+ ?[A-Za-z ]*)", text)
    if status is not None:
        return f"{place} answered {status[1].strip()}"
    first = re.sub(r" in [\d.]+[mµn]?s\b(?:, after .*?retry_timeout: \S+)?", "", text.partition("\n")[0])
    return re.sub(r"^Generic \w+ error: ", "", first)[:MOST_CHARACTERS]


class BucketPrefix:
    """An `ExportPlace` in a bucket. Endpoint and credentials are in the variables `AWS_…` of the AWS tools.

    Parameters
    ----------
    url : `s3://BUCKET/PREFIX`, the prefix of any depth, or none.

    Raises
    ------
    WrongArgumentError if the URL or the endpoint is none.
    AnalysisError if the store cannot be written, or ignores the conditions of rule 2.
    """

    def __init__(self, url: str) -> None:
        bucket, prefix = bucket_and_prefix(url)
        check_endpoints(os.environ)
        self._prefix = PurePosixPath(prefix)
        self._url = url
        what = f"an export to {SCHEME}"
        self._client = needed("obstore", what, REMEDY)
        self._errors = needed("obstore.exceptions", what, REMEDY)
        stores = needed("obstore.store", what, REMEDY)
        with self._reported():
            first = stores.S3Store(bucket, client_options=FIRST_OPTIONS, retry_config=FIRST_RETRIES)
            self._store = stores.S3Store(bucket, client_options=OPTIONS, retry_config=RETRIES)
        self._name = uuid4().hex.encode()
        self._versions: dict[str, str | None] = {}
        self._take_over(first)

    def __str__(self) -> str:
        """See `ExportPlace`."""
        return self._url

    def names(self) -> list[str]:
        """See `ExportPlace`."""
        prefix = self._prefix
        with self._reported():
            pages = self._client.list(self._store, str(prefix) if prefix.parts else None)
            paths = [PurePosixPath(each["path"]).relative_to(prefix) for page in pages for each in page]
        return sorted(str(path) for path in paths if len(path.parts) == 3 and path.match(FILES))

    def read(self, name: str, schema: Any, missing: dict[str, str]) -> Any:
        """See `ExportPlace`."""
        content = self._get(str(self._prefix / name))
        return None if content is None else read_table(self._shown(name), schema, missing, content)

    def replace(self, name: str, table: Any) -> bool:
        """See `ExportPlace`. A file without rows stays: S3 clients cannot delete on condition of an ETag."""
        sink = arrow("an export").BufferOutputStream()
        write_table(table, sink, name.rpartition(".")[2])
        self._check_name()
        key = str(self._prefix / name)
        return self._put(key, sink.getvalue().to_pybytes(), self._versions.get(key))

    def kept(self, name: str) -> bytes | None:
        """See `ExportPlace`."""
        return self._get(self._beside(name))

    def keep(self, name: str, content: bytes) -> None:
        """See `ExportPlace`."""
        self._check_name()
        with self._reported():
            self._client.put(self._store, self._beside(name), content, use_multipart=False)

    def _take_over(self, first: Any) -> None:
        """Become the one export there, and see that the store refuses what is put on a condition not met.

        Parameters
        ----------
        first : client of the first request.
        """
        key = self._beside(EXPORTER)
        with self._reported():
            self._client.put(first, key, self._name, use_multipart=False)
        for header, version in (("If-None-Match", None), ("If-Match", '"0"')):
            if self._put(key, b"", version):
                raise AnalysisError(
                    f"{self._url} must be in a store that respects {header}, and it ignores it: export to a "
                    "folder, and copy that"
                )

    def _check_name(self) -> None:
        if self._get(self._beside(EXPORTER)) != self._name:
            raise AnalysisError(
                f"another process has begun to export to {self._url}, which one may at a time: this one ends"
            )

    def _get(self, key: str) -> bytes | None:
        """Return the content of an object, and keep its version; None if there is none."""
        self._versions[key] = None
        with self._reported():
            try:
                found = self._client.get(self._store, key)
                content = bytes(found.bytes())
            except FileNotFoundError:
                return None
        self._versions[key] = found.meta["e_tag"]
        return content

    def _put(self, key: str, content: bytes, version: str | None) -> bool:
        """Put an object in place of a version, None for a new one; return False if it is another by now.

        A request that was repeated, since its answer was lost, finds what it has put itself.
        """
        mode = "create" if version is None else {"e_tag": version}
        with self._reported():
            try:
                done = self._client.put(self._store, key, content, mode=mode, use_multipart=False)
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
                done = None
        if done is None:
            return self._get(key) == content
        self._versions[key] = done["e_tag"]
        return True

    def _beside(self, name: str) -> str:
        """Return the key of what is kept beside the files, as in `state_folder`."""
        last = f".{self._prefix.name}.deniable-export" if self._prefix.parts else ".deniable-export"
        return str(self._prefix.parent / last / name)

    def _shown(self, name: str) -> PurePosixPath:
        return PurePosixPath(f"{self._url.rstrip('/')}/{name}")

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn errors of the client into ours."""
        try:
            yield
        except (self._errors.BaseError, FileNotFoundError, ValueError) as error:
            raise AnalysisError(
                f"{self._url} cannot be read or written: {reason_of(str(error))}; see that the bucket "
                "exists, and that AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
                "are right for it"
            ) from error
