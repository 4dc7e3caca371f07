"""The metrics of a producer. No label names a client, and no number depends on a true value."""

from producers.metrics.metric import CounterMetric, GaugeMetric

REASONS = ("over_budget", "over_window", "too_late", "too_early")  # why reports are refused

REPORTS = CounterMetric(
    name="producer_reports",
    labels=("collection", "result"),
    meaning="Reports by result: stored, and so durable; acknowledged by the broker; expired, acknowledged "
    "after the grace of their window, so that nobody counts them; refused; dropped for want of room.",
    remedy="dropped: see why Kafka is away, or a larger `outbox_bytes`. expired: a longer `grace_seconds`, "
    "or events that are reported sooner.",
)
REFUSED = CounterMetric(
    name="producer_refused",
    labels=("collection", "reason"),
    meaning=f"Reports refused by reason: {', '.join(REASONS)}.",
    remedy="over_budget and over_window are the limits of a client at work; too_late, too_early: see whether "
    "the machine's clock is right.",
)
PACKS = CounterMetric(name="producer_packs", meaning="Packs that the broker has acknowledged.")
SENT_BYTES = CounterMetric(
    name="producer_sent", unit="bytes", meaning="Bytes of packs that the broker has acknowledged."
)
OUTBOX_PACKS = GaugeMetric(
    name="producer_outbox_packs", meaning="Packs in the outbox, which wait for the broker's acknowledgement."
)
OUTBOX_BYTES = GaugeMetric(
    name="producer_outbox",
    unit="bytes",
    meaning="Bytes of the outbox.",
    remedy="near `outbox_bytes` reports will be dropped: see why Kafka does not take them.",
)
OUTBOX_AGE = GaugeMetric(
    name="producer_outbox_age",
    unit="seconds",
    meaning="Age of the oldest pack in the outbox.",
    remedy="beyond the grace of windows reports expire: see why Kafka does not take them.",
)
OUTBOX_UNSENDABLE = GaugeMetric(
    name="producer_outbox_unsendable_packs",
    meaning="Packs in the outbox that are damaged, of a later version, or larger than the broker takes. They "
    "hold up no others.",
    remedy="the log says which: put back a copy of the folder, use the deniable that wrote them, or raise "
    "`max.message.bytes` of `reports`.",
)
BUDGET_USED = GaugeMetric(
    name="producer_budget_used",
    unit="ratio",
    labels=("collection",),
    meaning="Largest share of its budget that one client has spent in this period, over the clients of this "
    "producer. Absent for `budget: none`.",
    remedy="none where `deniable_epsilon_permanent_nats` is within the budget: any number of reports is. "
    "Else near 1 the client's reports are refused: a larger budget, or fewer reports of a client.",
)
