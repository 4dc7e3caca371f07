"""A run of `produce` with a fake of Kafka: what is sent, printed, kept and resumed."""

import codecs
import re
import resource
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from deniable.config.settings.allowance import Allowance, Budget
from deniable.deploy.produce import run as produce
from deniable.deploy.produce.input import source
from deniable.deploy.produce.input.batches import MISSING_QUOTE, InputBatches
from deniable.deploy.produce.input.inputs import Inputs
from deniable.deploy.produce.input.resume import ResumePoints
from deniable.deploy.produce.input.source import FeedError, LineError
from deniable.deploy.produce.input.values import one
from deniable.deploy.produce.run import run_produce
from deniable.deploy.produce.timing import RunTiming
from deniable.deploy.produce.unknown.unknown_reports import MostlyUnlistedError, UnknownReports
from deniable.deploy.produce.unknown.unknown_values import UnknownValues
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.pipeline import storing_thread
from deniable.producers.storage.store import Store
from deniable.protocol.secrets.secret import load_secret
from deniable.protocol.wire import decode
from tests.support.messages import PinMessages
from tests.support.producers.fake_kafka import FakeKafka

pytestmark = pytest.mark.slow

CANARY = "canary-7391"
PATIENT_SECONDS = 5.0
CARRIER = Collection("carrier", KRR.from_epsilon(3, 1.0), values=("AA", "B6", "9E"))
OTHER = Collection(
    "carrier", KRR.from_epsilon(4, 2.0), values=("AA", "B6", "9E"), other=True, window_seconds=10**6
)
WIDE = Collection("wide", Rappor.from_probabilities(4096, 2, 1, 0.5, 0.25, 0.75))
SENT = re.compile(r"(\d+) reports? sent in \d+ packs? \(\d+ reports/s\)(?: to 127\.0\.0\.1:\d+)?(.*)")


def summed(line: str) -> tuple[int, str]:
    """How many reports a summary says were sent, and what it says behind that."""
    match = SENT.fullmatch(line)
    assert match, line
    return int(match[1]), match[2]


def counted(line: str) -> list[int]:
    """Numbers of what a summary names behind what was sent."""
    return [int(part.split(" ")[0]) for part in summed(line)[1].split("; ")[1:]]


def mend(path: Path, data: bytes, is_replaced: bool) -> None:
    """Write the file in place, or replace it, as many editors do."""
    target = path.with_suffix(".new") if is_replaced else path
    target.write_bytes(data)
    target.rename(path)


def resumed_at(line: str) -> int:
    """The line at which a run begins, as it says."""
    match = re.search(r" at line (\d+)", line)
    assert match, line
    return int(match[1])


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = FakeKafka(acknowledges=True)
    monkeypatch.setattr(storing_thread, "connect", fake.connect)
    return fake


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "lines.csv"
    made.write_text("who,value\n" + "".join(f"{CANARY}-{i},AA\n" for i in range(100)))
    return made


class Producing:
    """Runs on one file and folder."""

    def __init__(self, path: Path, kafka: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self.kafka = kafka
        self.capsys = capsys
        self.data_dir = path.parent / "data"
        load_secret(self.data_dir / "secret")
        capsys.readouterr()

    def run(
        self,
        allowance: Allowance | None = None,
        *,
        batch_lines: int = 10,
        strict: bool = False,
        shows_unknown: bool = False,
        wait: float = 0.3,
        follow: bool = False,
        decides: bool = False,
        **options: Any,
    ) -> None:
        """Run to the end, whatever that is."""
        config = ProducerConfig(
            allowances=(allowance or Allowance(CARRIER, None, reports_per_window=9),),
            bootstrap_servers="127.0.0.1:9",
            topic="reports",
            partitions=4,
            data_dir=self.data_dir,
            pack_seconds=3600,
            block_milliseconds=options.pop("block_milliseconds", 60_000),
            timing=ProducerTiming(retry=(0.01,)),
            **options,
        )
        name = config.allowances[0].collection.name
        progress = ResumePoints(
            self.data_dir, load_secret(self.data_dir / "secret"), name, "value", self.path
        )
        with self.path.open("rb") as stream:
            run_produce(
                config,
                Inputs(stream, progress, follow=follow),
                InputBatches("csv", "value", "who", one, strict, batch_lines, RunTiming(open_quote=0)),
                metrics_port=None,
                unknown=UnknownValues(
                    config.allowances[0].collection, "value", is_shown=shows_unknown, is_strict=strict
                ),
                reports=UnknownReports(
                    config.allowances[0].collection, ["--field value"], has_clients=True, is_deciding=decides
                ),
                timing=RunTiming(wait=wait, stop=0.1),
            )

    def reports(self) -> int:
        """Reports that Kafka has, those of a pack that was sent twice once."""
        packs = {pack.pack_id: pack for pack in (decode(sent["value"]) for sent in self.kafka.sent)}
        return sum(pack.reports for pack in packs.values())

    def output(self) -> list[str]:
        """Lines on stderr since the last call; stdout must be empty."""
        output = self.capsys.readouterr()
        assert output.out == ""
        assert CANARY not in output.err
        return output.err.splitlines()


@pytest.fixture
def producing(path: Path, kafka: Any, capsys: pytest.CaptureFixture[str]) -> Producing:
    return Producing(path, kafka, capsys)


def test_a_run_that_ended_is_forgotten(producing: Producing) -> None:
    for total in (100, 200):
        producing.run()
        assert producing.reports() == total
        (line,) = producing.output()
        assert SENT.fullmatch(line)
        assert summed(line) == (100, "")


def test_refusals_are_counted_by_reason(producing: Producing) -> None:
    """Clients with three reports each: one is over the limit of the window, and with a second run all are."""
    producing.path.write_text("who,value\n,B6\n" + "a,AA\nb,B6\nc,AA\n" * 3)
    allowance = Allowance(CARRIER, None, reports_per_window=2)
    producing.run(allowance)
    assert producing.reports() == 6
    assert producing.output()[0].startswith("line 2 skipped: ")
    producing.run(allowance)
    assert producing.reports() == 6
    (_, line) = producing.output()
    assert summed(line)[0] == 0
    assert counted(line) == [1, 9]
    producing.run(Allowance(CARRIER, Budget(0.5, 1e-9, 2**31), reports_per_window=9))
    refused, _spent = producing.output()[-2:]
    assert counted(refused)[-1] == 9


def test_lost_broker_leaves_stored_reports_to_the_next_run(producing: Producing) -> None:
    producing.kafka.acknowledges = False
    with pytest.raises(DeliveryError, match=r"0\.3 s"):
        producing.run()
    (line,) = producing.output()
    assert summed(line)[0] == 0
    assert len(counted(line)) == 1
    producing.kafka.acknowledges = True
    producing.run()
    resumed, line = producing.output()
    assert resumed_at(resumed) == 102
    assert (summed(line)[0], counted(line)) == (100, [100])
    assert producing.reports() == 100


def test_late_reports_of_another_collection_are_named(producing: Producing) -> None:
    """Another run with this folder kept them; the next run of any collection sends them, once."""
    producing.kafka.acknowledges = False
    with pytest.raises(DeliveryError):
        producing.run()
    producing.output()
    producing.kafka.acknowledges, producing.kafka.append_ms = True, 2**53
    other = Allowance(replace(CARRIER, name="other"), None, reports_per_window=9)
    producing.run(other, others=(CARRIER,))
    (line,) = producing.output()
    assert (summed(line)[0], counted(line)) == (200, [100] * 4)
    assert line.count(" of carrier") == 2


def test_an_interrupted_run_is_resumed(producing: Producing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two batches: what was reported leaves, the rest is left to the next run."""
    batches = []

    def interrupt(*_: object) -> None:
        batches.append(1)
        if len(batches) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(produce.ProduceView, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        producing.run()
    line, last = producing.output()
    assert (summed(line), last) == ((40, ""), produce.INTERRUPTED)
    producing.run()
    assert resumed_at(producing.output()[0]) == 42
    assert producing.reports() == 100


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_broken_line_stops_the_run_and_is_resumed_once_mended(
    producing: Producing, is_replaced: bool
) -> None:
    """Nothing is sent twice or lost, whether the file is mended in place or an editor replaces it."""
    good = producing.path.read_bytes()
    producing.path.write_bytes(good + f"{CANARY}, {CANARY},B6\nc,9E\n".encode())
    for _ in range(2):
        with pytest.raises(LineError) as caught:
            producing.run()
        assert str(caught.value).startswith(f"line 102 of {producing.path}: ")
        assert CANARY not in str(caught.value)
        assert producing.reports() == 100
    assert resumed_at(producing.output()[-1]) == 102
    mend(producing.path, good + f'"{CANARY}, {CANARY}",B6\nc,9E\n'.encode(), is_replaced)
    producing.run()
    assert producing.reports() == 102
    resumed, line = producing.output()
    assert (resumed_at(resumed), summed(line)) == (102, (2, ""))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_open_quote_that_is_waited_for_is_named_and_resumed_once_mended(
    producing: Producing, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    """Ctrl-C while a followed file has an open quote: the lines before it are not lost nor sent twice."""
    good = producing.path.read_bytes() + b"a,B6\nb,B6\n"
    producing.path.write_bytes(good + f'"{CANARY},B6\nc,9E\n'.encode())
    polls = []

    def sleep(_: float) -> None:
        polls.append(1)
        if len(polls) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        clock = SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
        patched.setattr(source, "time", clock)
        with pytest.raises(KeyboardInterrupt):
            producing.run(follow=True)
    assert producing.reports() == 100
    waiting, line, last = producing.output()
    assert last == produce.INTERRUPTED
    assert waiting == (
        f"{producing.path}, line 104: waiting for the closing quote of a cell; lines from there on are sent "
        f"once it arrives{MISSING_QUOTE}"
    )
    assert summed(line) == (100, "")
    mend(producing.path, good + f'"{CANARY}",B6\nc,9E\n'.encode(), is_replaced)
    producing.run()
    assert producing.reports() == 104
    resumed, line = producing.output()
    assert (resumed, summed(line)) == ("resuming at line 102", (4, ""))


@pytest.mark.parametrize(
    ("encoding", "mark", "name"),
    [
        ("utf-16-le", codecs.BOM_UTF16_LE, "UTF-16"),
        ("utf-16-be", codecs.BOM_UTF16_BE, "UTF-16"),
        ("utf-32-le", codecs.BOM_UTF32_LE, "UTF-32"),
        ("utf-32-be", codecs.BOM_UTF32_BE, "UTF-32"),
    ],
)
def test_another_encoding_is_refused_before_anything_is_sent(
    producing: Producing, encoding: str, mark: bytes, name: str
) -> None:
    text = producing.path.read_text()
    producing.path.write_bytes(mark + text.encode(encoding))
    with pytest.raises(FeedError) as caught:
        producing.run()
    assert str(caught.value) == (
        f"{producing.path} begins with the byte order mark of {name}; nothing of it was used: convert it to "
        f"UTF-8 first, such as by iconv -f {name} -t UTF-8"
    )
    assert (producing.reports(), producing.output()) == (0, [])
    producing.path.write_bytes(codecs.BOM_UTF8 + text.encode())
    producing.run()
    assert producing.reports() == 100


def test_another_file_after_a_broken_line_begins_at_line_1(producing: Producing) -> None:
    producing.path.write_bytes(producing.path.read_bytes() + b"a,b,c\n")
    with pytest.raises(LineError):
        producing.run()
    producing.output()
    producing.path.unlink()
    producing.path.write_text("who,value\n" + "".join(f"other-{i},AA\n" for i in range(200)))
    producing.run()
    assert resumed_at(producing.output()[0]) == 1
    assert producing.reports() == 300


def test_input_without_a_line_of_use_is_refused(producing: Producing, pin_messages: PinMessages) -> None:
    producing.path.write_text(f"who,value\n,{CANARY}\n")
    pin_messages({"no line of use": producing.run})
    assert len(producing.output()) == 2


def test_lines_wait_for_room_in_the_outbox(producing: Producing, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 times what the outbox holds goes through it."""
    producing.path.write_text("who,value\n" + "".join(f"{i},AA\n" for i in range(40_000)))
    producing.run(Allowance(WIDE, None), batch_lines=500, outbox_bytes=1_000_000)
    assert producing.reports() == 40_000
    assert len(producing.output()) == 1


def test_lines_that_find_no_room_are_reported_and_resumed(producing: Producing) -> None:
    producing.path.write_text("who,value\n" + "".join(f"{i},AA\n" for i in range(5_000)))
    producing.kafka.acknowledges = False
    with pytest.raises(DeliveryError, match=r"^500 lines .*outbox"):
        producing.run(Allowance(WIDE, None), batch_lines=500, outbox_bytes=1_000_000)
    producing.kafka.acknowledges = True
    producing.output()
    producing.run(Allowance(WIDE, None), batch_lines=500, outbox_bytes=1_000_000)
    assert 2 < resumed_at(producing.output()[0]) < 5_002
    assert producing.reports() == 5_000


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """As a disk that is full: no file of this process may grow beyond."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_is_one_line_and_sends_nothing_partially(producing: Producing) -> None:
    producing.path.write_text("who,value\n" + "".join(f"{i},AA\n" for i in range(5_000)))
    producing.run(Allowance(WIDE, None, reports_per_window=9), batch_lines=1000)
    sent = producing.reports()
    with largest_file(100_000), pytest.raises(DeliveryError, match=r"^1000 lines "):
        producing.run(Allowance(WIDE, None, reports_per_window=9), batch_lines=1000)
    assert producing.reports() == sent
    producing.run(Allowance(WIDE, None, reports_per_window=9), batch_lines=1000)
    assert producing.reports() == sent + 5_000


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_run_with_a_damaged_pack_has_not_ended(producing: Producing, damaged: int) -> None:
    """What is sound leaves; the run goes on to fail, and is resumed, until the pack can be sent."""
    producing.path.write_text("who,value\n" + "".join(f"{i},AA\n" for i in range(250)))
    producing.kafka.acknowledges = False
    with pytest.raises(DeliveryError):
        producing.run(pack_reports=100)
    with closing(Store(producing.data_dir)) as store:
        number, record = store.rows("SELECT number, record FROM records ORDER BY number")[damaged]
        store.rows("UPDATE records SET record = zeroblob(60) WHERE number = ?", number)
    producing.kafka.acknowledges = True
    producing.kafka.sent.clear()
    sound = 250 - decode(record).reports
    producing.output()
    for sent in (sound, 0):
        with pytest.raises(DeliveryError, match=f"^pack {number} "):
            producing.run(pack_reports=100)
        resumed, *_, line = producing.output()  # and that it waits, on a slow machine
        assert resumed_at(resumed) == 252
        assert summed(line)[0] == sent
        assert counted(line)[-1] == 1
    assert producing.reports() == sound
    with closing(Store(producing.data_dir)) as store:
        store.rows("UPDATE records SET record = ? WHERE number = ?", record, number)
    producing.run(pack_reports=100)
    assert producing.reports() == 250
    assert resumed_at(producing.output()[0]) == 252
    producing.run(pack_reports=100)
    assert producing.reports() == 500


def test_messages_and_logs_do_not_depend_on_values(producing: Producing) -> None:
    """How many values are unknown is a true count: two runs that differ in values only say the same."""
    message = []
    for value in ("AA", CANARY, '"\n,""', "\udcff\r", "x" * 3_000_000):
        lines = "value,who\n" + "".join(f'"{value}",{i}\n' if i else f"{value[1:]},0\n" for i in range(5))
        if value.startswith('"'):
            lines = "value,who\n" + '"\n,""",1\n' * 5
        producing.path.write_bytes(lines.encode("utf-8", "surrogateescape"))
        with capture_logs() as logs:
            producing.run(wait=PATIENT_SECONDS)
        message.append([re.sub(r"\(\d+ reports/s\)", "", line) for line in producing.output()] + logs)
    assert all(each == message[0] for each in message)
    assert producing.reports() == 25


def test_unknown_values_are_shown_only_if_asked(producing: Producing) -> None:
    producing.path.write_text("who,value\n" + "".join(f"{CANARY}-{i},{i % 30}\n" for i in range(90)))
    producing.run(shows_unknown=True)
    warning, sent, last = producing.output()
    assert "--field value" in warning
    assert summed(sent) == (90, "")
    assert last.endswith(": most")
    producing.run()
    (sent,) = producing.output()
    assert summed(sent) == (90, "")


def unlisted(path: Path, lines: int, clients: int = 10**9) -> None:
    path.write_text("who,value\n" + "".join(f"{CANARY}-{i % clients},{CANARY}-{i}\n" for i in range(lines)))


def test_an_unattended_run_of_the_wrong_column_ends_soon(producing: Producing) -> None:
    """By its reports alone, at the first decision; what it said resumes behind what it sent."""
    unlisted(producing.path, 3000)
    with pytest.raises(MostlyUnlistedError) as stopped:
        producing.run(Allowance(OTHER, None), decides=True, batch_lines=500, wait=PATIENT_SECONDS)
    assert stopped.value.exit_status == 4
    (sent,) = producing.output()
    assert (summed(sent)[0], producing.reports()) == (1000, 1000)
    producing.run(Allowance(OTHER, None), batch_lines=500, wait=PATIENT_SECONDS)
    resumed, sent = producing.output()
    assert (resumed_at(resumed), summed(sent)) == (1002, (2000, ""))


def test_a_run_that_is_decided_at_its_end_was_whole(producing: Producing) -> None:
    """Half of the first 1,000 values are listed, so that the decision at 1,000 reports is no."""
    values = ["AA"] * 500 + [CANARY] * 1490
    producing.path.write_text(
        "who,value\n" + "".join(f"{CANARY}-{i},{value}\n" for i, value in enumerate(values))
    )
    allowance = Allowance(OTHER, None, reports_per_window=2)
    for _ in range(2):
        with pytest.raises(MostlyUnlistedError):
            producing.run(allowance, decides=True, batch_lines=500, wait=PATIENT_SECONDS)
        (sent,) = producing.output()
        assert summed(sent) == (1990, "")


def test_refused_reports_decide_nothing(producing: Producing) -> None:
    """Their number is that of lines; that they show something would cost privacy without a charge."""
    unlisted(producing.path, 3000, clients=300)
    producing.run(Allowance(OTHER, None, reports_per_window=3), decides=True, wait=PATIENT_SECONDS)
    (sent,) = producing.output()
    assert summed(sent)[0] < 1000


def test_strict_run_of_unknown_values_sends_nothing(producing: Producing) -> None:
    producing.path.write_text("who,value\n" + "".join(f"{CANARY}-{i},{CANARY}-{i}\n" for i in range(90)))
    with pytest.raises(FeedError, match="carrier"):
        producing.run(strict=True)
    assert producing.output() == []
    assert producing.reports() == 0
