"""One run of the path of devices: clients, edges, broker, relays and workers, a fault, and the verdict."""

import dataclasses
import random
import time
import uuid
from collections import Counter
from pathlib import Path

from kafka.errors import KafkaError

from deploy.broker.errors import BrokerError
from deploy.cluster.topics.setup import create
from deploy.config.file import Configuration, load
from tests.chaos.devices.clients import Client
from tests.chaos.devices.drafts import Drafts
from tests.chaos.devices.faults import PATH_FAULTS, PathFault
from tests.chaos.devices.processes import Edges, Relays, describe, end_all
from tests.chaos.devices.rude import RudeClient
from tests.chaos.devices.stage import PathStage
from tests.chaos.judging import uploads as logs
from tests.chaos.judging.path_verdict import PathVerdict, Sent, figures, late_reports, latest_pack, unshown
from tests.chaos.judging.recount import count_all, records_of, recount
from tests.chaos.judging.service import Service
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.collection_setup import compact_all_the_time, delete_topics
from tests.chaos.processes.workers import Workers
from tests.chaos.run import Order, Outcome, RunError, drain, judge, replayed
from tests.support.processes import wait_until

CLIENTS = 8
BUSY_CLIENTS = 32  # that send as fast as they are answered
WINDOW_SECONDS = 5
BEGIN_SECONDS = 90.0
SETTLE_SECONDS = 60.0
FILE = """\
revision: 1
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", allow_plaintext: true}}
edge: {{uploads_per_minute: 0}}
relay: {{secret_file: secret, delivery_seconds: {delivery}, batch_reports: 300, shuffle_reports: 20,
  pack_reports: 25, idle_seconds: 0.5}}
collections:
  - {{name: each, mechanism: k-rr, size: 30000, other: false, epsilon: 2.0, window_seconds: {window},
     grace_seconds: {grace}, minimum_reports: 1000000, budget: none}}
  - {{name: bits, mechanism: rappor, bits: 16, hashes: 2, cohorts: 2, f: 0.25, p: 0.35, q: 0.65,
     candidates: [A], memoize: false, window_seconds: {window}, grace_seconds: {grace}, budget: none}}
"""


def run_path(order: Order, broker: ChaosBroker, folder: Path, act: PathFault | None = None) -> Outcome:
    """Run an order and judge the result.

    Parameters
    ----------
    order : parameters of the run; `packs_per_second` are uploads, `options` those of workers.
    broker : stays running in any case.
    folder : empty, for the collection file and the logs.
    act : replaces the fault that `order` names.

    Raises
    ------
    RunError, with the processes' last lines, if anything but the counts is wrong.
    """
    fault = act or PATH_FAULTS[order.fault]
    configuration = configure(folder, broker.bootstrap_servers, fault)
    workers = Workers(configuration, folder, order.options)
    edges, relays = Edges(configuration, folder), Relays(configuration, folder, dict(fault.order))

    def story() -> str:
        return f"{workers.describe()}\n{describe(edges, relays)}\nagain: {order.again}"

    try:
        verdict, misanswered = _judged(order, fault, broker, workers, edges, relays)
        return Outcome(verdict, "" if verdict.exact else f"{story()}\nmisanswered: {dict(misanswered)}")
    except (RunError, KafkaError, BrokerError, OSError) as error:
        raise RunError(f"{error!r}\n{story()}") from error
    finally:
        broker.resume()
        broker.start()
        end_all(edges, relays)
        workers.stop()
        delete_topics(broker.bootstrap_servers, configuration.topics)


def configure(folder: Path, servers: str, fault: PathFault) -> Configuration:
    """Write the collection file and the relays' secret, and create the topics."""
    secret, file = folder / "secret", folder / "deniable.yaml"
    secret.touch(0o600)
    secret.write_bytes(bytes(range(32)))
    delivery = fault.delivery_seconds
    text = FILE.format(
        servers=servers,
        prefix=f"chaos-{uuid.uuid4().hex[:10]}-",
        delivery=delivery,
        window=WINDOW_SECONDS,
        grace=fault.close_seconds + delivery,
    )
    file.write_text(text, encoding="utf-8")
    configuration = load(file, environment={})
    create(configuration.cluster, configuration.topics, 1, configuration.collections)
    compact_all_the_time(servers, configuration.topics)
    return configuration


def _judged(
    order: Order, fault: PathFault, broker: ChaosBroker, workers: Workers, edges: Edges, relays: Relays
) -> tuple[PathVerdict, Counter[str]]:
    configuration = workers.configuration
    each, bits = configuration.collections
    drafts = Drafts(each, bits, order.seed)
    service = Service(broker.bootstrap_servers, configuration.topics)
    _begin(workers, edges, relays)
    clients = _clients(order, fault, edges.ports, drafts)
    chance = random.Random(order.seed)
    ends_at = time.monotonic() + order.seconds
    stage = PathStage(
        *(chance, order.seed, broker, workers, None, ends_at),
        *(edges, relays, fault.close_seconds, WINDOW_SECONDS),
    )
    try:
        for thread in (*clients, service):
            thread.start()
        fault.act(stage)
        stage.rest(stage.left, stage.left)
        for client in clients:
            client.stopped.set()
        for client in clients:
            client.join()
        _settle(configuration, fault, relays)
        replay = replayed(configuration, "--uploads", "--wait", "60") if order.replay else 0
        died = drain(workers, service) + sum(seat.died for seat in (*edges.seats, *relays.seats))
    finally:
        for thread in (*clients, service):
            thread.stopped.set()
    service.join()
    if errors := [thread.error for thread in (*clients, service) if thread.error]:
        raise RunError(f"clients or sampler failed: {errors!r}")
    misanswered = sum((client.misanswered for client in clients), Counter[str]())
    verdict = _verdict(order, fault, workers, service, died, replay, drafts)
    verdict = dataclasses.replace(
        verdict,
        requests=sum(client.requests for client in clients),
        unavailable=sum(client.unavailable for client in clients),
        refusals=sum(client.refusals for client in clients),
        misanswered=misanswered.total(),
    )
    left = unshown(
        verdict,
        has_good=fault.invalid < 1,
        has_bad=bool(fault.invalid or fault.rude),
        is_away=fault.is_away,
        may_be_late=fault.may_be_late,
    )
    return dataclasses.replace(verdict, unshown=left), misanswered


def _begin(workers: Workers, edges: Edges, relays: Relays) -> None:
    """Start two of each, and wait until all work."""
    for _ in range(2):
        relays.open()
        workers.start()
    edges.open()
    if not workers.wait_until_open() or not wait_until(edges.are_ready, BEGIN_SECONDS):
        raise RunError("workers, relays or the first edge did not begin")
    edges.open()  # which finds the signing key that the first one created
    if not wait_until(edges.are_ready, BEGIN_SECONDS):
        raise RunError("the second edge did not begin")


def _clients(order: Order, fault: PathFault, ports: list[int], drafts: Drafts) -> list[Client | RudeClient]:
    number = CLIENTS if order.packs_per_second else BUSY_CLIENTS
    rate, later = order.packs_per_second / number, WINDOW_SECONDS + fault.close_seconds
    seconds = (3.0 if fault.resent_later else 0.5) * later
    clients: list[Client | RudeClient] = [
        Client(ports, drafts, rate, fault.invalid, seconds, 100 * order.seed + client)
        for client in range(number)
    ]
    return clients + [RudeClient(ports, drafts, 1000 * order.seed + client) for client in range(fault.rude)]


def _settle(configuration: Configuration, fault: PathFault, relays: Relays) -> None:
    """Wait until all windows have closed, and relays have sent all that they accepted and said all."""
    for seat in relays.seats:
        relays.start(seat)
    time.sleep(WINDOW_SECONDS + fault.close_seconds)
    topics, collections = configuration.topics, configuration.by_fingerprint()
    servers = configuration.kafka.bootstrap_servers

    def is_settled() -> bool:
        time.sleep(0.5)
        uploaded = logs.uploaded(
            servers, topics.uploads, topics.partitions, collections, fault.delivery_seconds
        )
        said = logs.outcomes(servers, topics.rejected_uploads, topics.partitions)
        packs = recount(servers, topics.reports, topics.partitions, collections)
        packed = sum(cell.reports for cell in packs.cells.values()) + late_reports(packs)
        written = uploaded.accepted + uploaded.rejected.total()
        return said.uploaded == written and packed >= uploaded.accepted

    wait_until(is_settled, SETTLE_SECONDS)


def _verdict(
    order: Order,
    fault: PathFault,
    workers: Workers,
    service: Service,
    died: int,
    replay: int,
    drafts: Drafts,
) -> PathVerdict:
    configuration = workers.configuration
    servers, topics, known = configuration.kafka.bootstrap_servers, configuration.topics, workers.known
    uploaded = logs.uploaded(servers, topics.uploads, topics.partitions, known, fault.delivery_seconds)
    said = logs.outcomes(servers, topics.rejected_uploads, topics.partitions)
    packs = recount(servers, topics.reports, topics.partitions, known)
    each = drafts.each.fingerprint
    sent = [
        Sent(one.upload_id, (one.window_start, int.from_bytes(one.groups[0].rows, "little")), one.is_told)
        for one in drafts.drawn
    ]
    found = figures(sent, uploaded, said, packs, count_all(uploaded.rows, known), each)
    counted = judge(dataclasses.replace(order, replay=False), workers, died, service)
    # The recount calls reports missing that workers rejected as too late, so those must be all.
    return PathVerdict(
        **dataclasses.asdict(counted)
        | {"replayed": abs(replay - late_reports(packs)) if order.replay else 0},
        **found,
        overdue=0 if fault.may_be_late else late_reports(packs),
        latest_pack=round(
            latest_pack(records_of(servers, topics.reports, topics.partitions), known, fault.close_seconds), 1
        ),
    )
