"""The metrics of a producer. No label names a client, and no number depends on a true value."""

from deniable.protocol.metric import CounterMetric, GaugeMetric
from deniable.protocol.wire import GROUP_REASONS

REASONS = ("over_budget", "over_window", "too_late", "too_early")  # of refused reports
OTHER_REASON = "other"

REPORTS = CounterMetric(
    name="producer_reports",
    labels=("collection", "result"),
    meaning="Reports by result: stored durably; acknowledged by the broker; expired, which means "
    "acknowledged after the grace of their window and never counted; rejected by the edge and never "
    "counted; refused; dropped because the outbox was full.",
    remedy="dropped: find out why Kafka or the edge is unreachable, or raise `outbox_bytes`. expired: raise "
    "`grace_seconds`, or report events sooner. rejected: see `deniable_producer_rejected_total`.",
)
REFUSED = CounterMetric(
    name="producer_refused",
    labels=("collection", "reason"),
    meaning=f"Reports refused by reason: {', '.join(REASONS)}.",
    remedy="over_budget and over_window: limits of clients apply. too_late, too_early: check the machine's "
    "clock.",
)
REJECTED = CounterMetric(
    name="producer_rejected",
    labels=("collection", "reason"),
    meaning="Stored reports that the edge rejected, by reason, so they are lost: "
    f"{', '.join((*GROUP_REASONS, OTHER_REASON))}. Always 0 with `deliver: kafka`.",
    remedy="unknown_collection: update this collection file, the edge counts other parameters. too_late: the "
    "outbox had waited for longer than the grace. too_early: check the machine's clock.",
)
PACKS = CounterMetric(name="producer_packs", meaning="Packs that the broker, or the edge, has acknowledged.")
SENT_BYTES = CounterMetric(
    name="producer_sent",
    unit="bytes",
    meaning="Bytes of packs that the broker, or the edge, has acknowledged.",
)
OUTBOX_PACKS = GaugeMetric(
    name="producer_outbox_packs", meaning="Packs in the outbox, waiting to be acknowledged."
)
OUTBOX_BYTES = GaugeMetric(
    name="producer_outbox",
    unit="bytes",
    meaning="Bytes of the outbox.",
    remedy="near `outbox_bytes`, reports will soon be dropped: find out why Kafka does not accept them.",
)
OUTBOX_AGE = GaugeMetric(
    name="producer_outbox_age",
    unit="seconds",
    meaning="Age of the oldest pack in the outbox.",
    remedy="beyond the grace of windows, reports expire: find out why Kafka does not accept them.",
)
OUTBOX_UNSENDABLE = GaugeMetric(
    name="producer_outbox_unsendable_packs",
    meaning="Packs in the outbox that are damaged, of a later version, larger than the broker accepts, or "
    "made for another destination. They do not delay others.",
    remedy="the log names them: restore the folder from a copy, use the version of deniable that wrote them, "
    "raise `max.message.bytes` of `reports`, or set `deliver` as it was until they are sent.",
)
PARAMETERS_DIFFER = GaugeMetric(
    name="producer_parameters_differ",
    labels=("collection",),
    meaning="1 if the workers count the collection, or the edge takes it, with other parameters or not at "
    "all: they reject its reports. 0 if not, and while that is unknown.",
    remedy="the log names the parameters; use the workers' collection file for this producer.",
)
BUDGET_STORE_AWAY = GaugeMetric(
    name="producer_budget_store_away",
    meaning="1 if clients cannot be charged, because the database of `budget_store` is away: their reports "
    "wait in memory or are dropped, by `when_away`. Otherwise 0.",
    remedy="the log says why; see docs/replicas.md.",
)
BUDGET_USED = GaugeMetric(
    name="producer_budget_used",
    unit="ratio",
    labels=("collection",),
    meaning="Largest share of its budget that one client has spent in this period, over the clients of this "
    "producer: with `values: any` whatever its values do, if it is known when they change, with `values: "
    "unchanged` while its value stays the same. Absent for `budget: none`.",
    remedy="none if any number of reports is within the budget: `deniable_budget_unlimited` is 1. "
    "Otherwise, near 1, the client's reports are refused: allow a larger budget, or report less often.",
)
