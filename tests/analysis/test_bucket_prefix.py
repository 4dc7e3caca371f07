"""Exports to a real S3 server: what two of them do to each other, and what readers see."""

from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any, ClassVar

import pytest

from tests.support.messages import PinMessages

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")
pytest.importorskip("obstore", reason="the extra s3 is not installed")

from deniable.analysis.errors import AnalysisError
from deniable.analysis.export.bucket_prefix import BucketPrefix
from deniable.analysis.export.day_files import DayFiles
from deniable.analysis.tables.estimate_table import estimate_schema
from tests.analysis.s3_server import BUCKET, KEY, REGION, SECRET, S3Server
from tests.analysis.test_day_files import FINAL, table_of, windows
from tests.support.aggregator.builders import FRUIT, T0
from tests.support.processes import new_port

pytestmark = [pytest.mark.slow, pytest.mark.all]
ROWS = len(FINAL.values) + 1


def day_files(url: str, ending: str = "parquet") -> DayFiles:
    return DayFiles(BucketPrefix(url), FRUIT, "estimates", ending, estimate_schema())


def revisions(store: S3Server, url: str) -> Counter[tuple[int, int]]:
    """Number of rows of each window and revision, as Arrow reads them."""
    from pyarrow.dataset import dataset

    ending = store.names(url)[0].rpartition(".")[2]
    found = dataset(store.names(url), format=ending, filesystem=store.files())
    table = found.to_table(["window_start", "revision"])
    starts = [int(each.timestamp()) for each in table["window_start"].to_pylist()]
    return Counter(zip(starts, table["revision"].to_pylist(), strict=True))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_newer_revisions_replace_older_ones(store: S3Server, ending: str) -> None:
    url = store.prefix()
    files = day_files(url, ending)
    files.merge(table_of(windows(range(20))))
    files.merge(table_of(windows(range(10, 30), revision=2)))
    day_files(url, ending).merge(table_of(windows(range(5), revision=1)))
    expected = [*windows(range(10)), *windows(range(10, 30), 2)]
    assert revisions(store, url) == {(each.window_start, each.revision): ROWS for each in expected}
    assert [f"{url}/{name}".removeprefix("s3://") for name in files.files] == store.names(url)


def test_withdrawn_windows_leave_a_file_without_rows(store: S3Server) -> None:
    url = store.prefix()
    files = day_files(url)
    files.merge(table_of(windows(range(2))))
    gone = {(FINAL.fingerprint, (T0 + 10 * i) * 1_000_000): (3, True) for i in range(2)}
    files.merge(table_of([]), gone)
    assert revisions(store, url) == Counter()
    assert (files.windows, len(files.withdrawn), files.files) == (set(), 2, set())
    files.merge(table_of(windows(range(1), revision=4)))
    assert revisions(store, url) == {(T0, 4): ROWS}


def test_bucket_without_prefix_keeps_its_progress_beside_the_files(store: S3Server) -> None:
    store.files().create_dir("whole")
    files = day_files("s3://whole")
    assert files.progress() == 0
    files.merge(table_of(windows(range(1))))
    files.keep_progress(17)
    assert day_files("s3://whole/").progress() == 17
    assert files.place.names() == sorted(files.files)


def test_prefix_holds_one_kind_and_one_format(store: S3Server) -> None:
    url = store.prefix()
    day_files(url).merge(table_of(windows(range(1))))
    with pytest.raises(AnalysisError, match=f"^{url} "):
        day_files(url, "csv")


def test_second_export_takes_over_and_the_first_ends(store: S3Server) -> None:
    url = store.prefix()
    first = day_files(url)
    first.merge(table_of(windows(range(3))))
    second = day_files(url)
    with pytest.raises(AnalysisError, match=url):
        first.merge(table_of(windows(range(3), revision=2)))
    with pytest.raises(AnalysisError, match=url):
        first.keep_progress(17)
    second.merge(table_of(windows(range(2, 5))))
    assert second.progress() == 0
    assert revisions(store, url) == {(each.window_start, 1): ROWS for each in windows(range(5))}


def test_file_replaced_between_reading_and_writing_is_merged_again(
    store: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by the upload of a killed export that arrives late: without a condition, its windows were lost."""
    url = store.prefix()
    files = day_files(url)
    for first in (0, 3):
        late = [windows(range(first, first + 1)), windows(range(first + 1, first + 2))]
        seen = BucketPrefix.read

        def read(place: BucketPrefix, *arguments: Any, late: Any = late, seen: Any = seen) -> Any:
            table = seen(place, *arguments)
            if late:
                name, other = arguments[0], BucketPrefix(url)
                held = seen(other, *arguments)
                added = table_of(late.pop()).drop_columns(["collection"])
                import pyarrow as pa

                rows = [] if held is None else [held.drop_columns(["collection"])]
                assert other.replace(name, pa.concat_tables([*rows, added]).unify_dictionaries())
                other._client.put(other._store, other._beside("exporter"), place._name)
            return table

        with monkeypatch.context() as patch:
            patch.setattr(BucketPrefix, "read", read)
            files.merge(table_of(windows(range(first + 2, first + 3))))
    assert revisions(store, url) == {(each.window_start, 1): ROWS for each in windows(range(6))}


def test_files_are_read_by_other_programs(store: S3Server, tmp_path: Path) -> None:
    """By the URL; DuckDB through Arrow, since its own client of S3 is an extension to download."""
    duckdb, pandas, polars = map(pytest.importorskip, ("duckdb", "pandas", "polars"))
    from pyarrow.dataset import dataset

    url = store.prefix()
    day_files(url).merge(table_of(windows(range(8640 - 5, 8640 + 5))))
    options = {
        "aws_endpoint_url": f"http://{store.address}",
        "aws_allow_http": "true",
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "aws_region": REGION,
    }
    lazy = polars.scan_parquet(f"{url}/", hive_partitioning=True, storage_options=options)
    by_day = lazy.group_by("day").len().sort("day").collect()
    assert by_day["len"].to_list() == [5 * ROWS] * 2
    path = url.removeprefix("s3://")
    assert len(pandas.read_parquet(path, filesystem=store.files())) == 10 * ROWS
    rows = dataset(path, format="parquet", partitioning="hive", filesystem=store.files())  # noqa: F841
    assert duckdb.sql("SELECT collection, count(*) FROM rows GROUP BY ALL").fetchall() == [
        ("fruit", 10 * ROWS)
    ]


@pytest.mark.parametrize("scheme", ["http://", "https://"])
def test_wrong_address_of_the_store_shows_within_seconds(
    store: S3Server, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """The client gives up after 3 s and a pause of at most 10 s; as of all requests it was 60 s."""
    address = store.address if scheme == "https://" else f"127.0.0.1:{new_port()}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"{scheme}{address}")
    began = monotonic()
    with pytest.raises(AnalysisError, match=rf"^s3://{BUCKET}/x .*{scheme}{address}"):
        BucketPrefix(f"s3://{BUCKET}/x")
    assert monotonic() - began < 40


class Careless(BaseHTTPRequestHandler):
    """Stores what it is sent, whatever the condition, as old stores do."""

    ignored: ClassVar[str] = ""
    content: ClassVar[bytes] = b""

    def do_PUT(self) -> None:
        type(self).content = self.rfile.read(int(self.headers["Content-Length"]))
        is_refused = any(
            name in self.headers for name in ("If-Match", "If-None-Match") if name != self.ignored
        )
        self._answer(412 if is_refused else 200, b"")

    def do_GET(self) -> None:
        self._answer(200, b"of an exporter")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("bucket", "variables"),
    [
        ("absent", {}),
        (BUCKET, {"AWS_SECRET_ACCESS_KEY": "hidden"}),
        (BUCKET, {"AWS_ACCESS_KEY_ID": "nobody"}),
        (BUCKET, {"AWS_REGION": "eu-west-1"}),
    ],
)
def test_reason_of_the_store_is_reported_in_one_line(
    store: S3Server, monkeypatch: pytest.MonkeyPatch, bucket: str, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AnalysisError, match=f"^s3://{bucket}/x .*AWS_ENDPOINT_URL") as raised:
        BucketPrefix(f"s3://{bucket}/x")
    said = str(raised.value)
    assert not any(each in said for each in ("\n", "<", "Generic", ".deniable-export", "hidden", SECRET))


def test_messages(pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(port: int, header: str = "") -> None:
        for name, value in S3Server(f"127.0.0.1:{port}", Path()).variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(Careless, "ignored", header)
        try:
            BucketPrefix(f"s3://{BUCKET}/x")
        except AnalysisError as error:
            raise AnalysisError(str(error).replace(f":{port}", ":PORT")) from error

    with HTTPServer(("127.0.0.1", 0), Careless) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        pin_messages(
            {"no server": lambda: opened(new_port())}
            | {
                f"a store that ignores {each}": partial(opened, server.server_port, each)
                for each in ("If-Match", "If-None-Match")
            }
        )
        server.shutdown()
