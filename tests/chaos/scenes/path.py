"""The whole path of devices under load: clients, edges, broker, relays and workers."""

import time
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

from deniable.config.file import Configuration
from tests.chaos.faults.stage import Stage
from tests.chaos.judging import uploads as logs
from tests.chaos.judging.path_verdict import PathVerdict, figures, late_reports, latest_pack
from tests.chaos.judging.recount import count_all, records_of
from tests.chaos.load.clients import Client
from tests.chaos.load.drafts import Drafts
from tests.chaos.load.rude import RudeClient
from tests.chaos.processes.collection_setup import PATH_WINDOW_SECONDS, configure_path
from tests.chaos.processes.fleet import Edges, Relays
from tests.chaos.scenes.order import RunError
from tests.chaos.scenes.scene import Scene
from tests.support.processes import wait_until

CLIENTS = 8
BUSY_CLIENTS = 32  # that send as fast as they are answered
BEGIN_SECONDS = 120.0
SETTLE_SECONDS = 120.0
LEAST_TOLD = 100
LEAST_REFUSED = 20
LEAST_COUNTED = 0.5  # of the uploads that clients were told of
OF_SENDERS = ("requests", "unavailable", "refusals")


class PathScene(Scene):
    """Clients that speak HTTP, two edges, two relays and two workers."""

    replay_options = ("--uploads", "--wait", "60")

    def configure(self, prefix: str) -> Configuration:
        """Write the collection file and the relays' secret, and create the topics."""
        return configure_path(
            self.folder, self.servers, prefix, self.fault.close_seconds, self.fault.delivery_seconds
        )

    def load(self) -> list[Any]:
        """Return the clients; each fleet has its options by now."""
        fault, seed = self.fault, self.order.seed
        self.edges = Edges(self.configuration, self.folder)
        self.relays = Relays(self.configuration, self.folder, fault.relay_options)
        self.fleets += [self.relays, self.edges]
        self.drafts = Drafts(*self.configuration.collections, seed)
        number = CLIENTS if self.order.rate else BUSY_CLIENTS
        later = (3.0 if fault.resent_later else 0.5) * (PATH_WINDOW_SECONDS + fault.close_seconds)
        rate, ports = self.order.rate / number, self.edges.ports
        return [
            *(
                Client(ports, self.drafts, rate, fault.malformed, later, 100 * seed + client)
                for client in range(number)
            ),
            *(RudeClient(ports, self.drafts, 1000 * seed + client) for client in range(fault.rude)),
        ]

    def begin(self) -> None:
        """Start two processes of each kind, the second edge once the first has created the signing key."""
        self.relays.keep_running(2)
        self.edges.start()
        super().begin()
        for edges in (1, 2):
            self.edges.keep_running(edges)
            if not wait_until(self.edges.are_ready, BEGIN_SECONDS):
                raise RunError(f"edge {edges} did not begin")

    def stage(self) -> Stage:
        return replace(super().stage(), load=None, edges=self.edges, relays=self.relays)

    def drain(self) -> None:
        """Wait until all windows have closed, and relays have sent all that they accepted; then as above."""
        self.relays.keep_running(2)
        time.sleep(PATH_WINDOW_SECONDS + self.fault.close_seconds)
        wait_until(self._is_settled, SETTLE_SECONDS)
        super().drain()

    def _is_settled(self) -> bool:
        time.sleep(0.5)
        uploaded, said, packs = self._uploaded(), self._outcomes(), self.recount()
        packed = sum(cell.reports for cell in packs.cells.values()) + late_reports(packs)
        return said.uploaded == uploaded.accepted + uploaded.rejected.total() and packed >= uploaded.accepted

    def _uploaded(self) -> logs.Uploaded:
        topics, known = self.topics, self.configuration.by_fingerprint()
        return logs.uploaded(
            self.servers, topics.uploads, topics.partitions, known, self.fault.delivery_seconds
        )

    def _outcomes(self) -> logs.Totals:
        return logs.outcomes(self.servers, self.topics.rejected_uploads, self.topics.partitions)

    def verdict(self) -> PathVerdict:
        """Compare what clients were told, both logs, and what was stored."""
        fault, known, topics = self.fault, self.workers.known, self.topics
        uploaded, packs, each = self._uploaded(), self.recount(), self.drafts.each.fingerprint
        records = records_of(self.servers, topics.reports, topics.partitions)
        counts = count_all(uploaded.rows, known)
        verdict = PathVerdict(
            **asdict(self.judge(packs))
            | figures(self.drafts.drawn, uploaded, self._outcomes(), packs, counts, each)
            | {name: sum(getattr(sender, name) for sender in self.senders) for name in OF_SENDERS}
            | {"late_reports": late_reports(packs)},
            misanswered=self.misanswered().total(),
            overdue=late_reports(packs),
            latest_pack=round(latest_pack(records, known, fault.close_seconds), 1),
        )
        return replace(verdict, unshown=self._unshown(verdict))

    def _unshown(self, verdict: PathVerdict) -> int:
        fault = self.fault
        has_good, has_bad = fault.malformed < 1, bool(fault.malformed or fault.rude)
        is_counted = verdict.counted >= LEAST_COUNTED * verdict.told or fault.is_away
        return sum(
            (
                has_good and verdict.told < LEAST_TOLD,
                has_good and not is_counted,
                has_bad and verdict.refusals < LEAST_REFUSED,
                fault.is_away and not verdict.unavailable,
            )
        )

    def misanswered(self) -> Counter[str]:
        return sum((sender.misanswered for sender in self.senders), Counter[str]())

    def describe(self) -> str:
        return f"{super().describe()}\nmisanswered: {dict(self.misanswered())}"
