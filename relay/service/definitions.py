"""The metrics of a relay. No label holds a cohort, an upload id, or a value that came from input.

Rule: counters count batches once Kafka has all their packs. A batch that a relay sends again, after a restart
or because another relay works on its partition, is counted again: workers count it once.
"""

from deniable.protocol.metric import CounterMetric, GaugeMetric, HistogramMetric
from deniable.relay.acceptance import REASONS

SIZES = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0, 1_000_000.0)

UPLOADS = CounterMetric(
    name="relay_uploads", meaning="Uploads read from the topic `uploads`, repeated ones included."
)
REPORTS = CounterMetric(
    name="relay_reports",
    labels=("collection", "result"),
    meaning="Uploaded reports by result: accepted, rejected. Rejected ones are included if their "
    "upload is in "
    "time for a window of a known collection.",
)
REJECTED = CounterMetric(
    name="relay_reports_rejected",
    labels=("reason",),
    meaning=f"Uploaded reports rejected by reason: {', '.join(REASONS)}. Uploads that do not decode "
    "count as 0 "
    "reports.",
    remedy="duplicate: none, a repeated upload counts once. too_late: find out why the relay is "
    "behind, or raise "
    "`grace_seconds`. incomplete: a relay began without its position, see docs/relay.md. "
    "window_full: a larger "
    "`window_uploads`. Others: edges and relays have different files, or somebody else writes to `uploads`.",
)
REJECTED_GROUPS = CounterMetric(
    name="relay_groups_rejected",
    labels=("reason",),
    meaning="The same in groups of uploads; an upload that does not decode is one.",
)
BATCHES = CounterMetric(name="relay_batches", meaning="Batches of uploads sent.")
PACKS = CounterMetric(name="relay_packs", meaning="Packs sent to `reports`.")
PACKED = CounterMetric(name="relay_packed_reports", meaning="Reports in these packs.")
HELD = GaugeMetric(
    name="relay_held_reports",
    labels=("collection",),
    meaning="Accepted reports that are held back until enough have come to shuffle them, or their "
    "window closes.",
)
SHUFFLED = HistogramMetric(
    name="relay_shuffled_reports",
    labels=("collection",),
    buckets=SIZES,
    meaning="Reports that were put in one random order, of one collection, window and cohort: one "
    "observation "
    "each time that reports leave.",
    remedy="much below `shuffle_reports`: the window got no more reports of a cohort. Longer "
    "windows, or fewer "
    "cohorts.",
)
SHUFFLED_LEAST = GaugeMetric(
    name="relay_shuffled_reports_least",
    labels=("collection",),
    meaning="The smallest of these numbers since the relay's start. Absent before the first.",
    remedy="as for `deniable_relay_shuffled_reports`.",
)
EPSILON_SHUFFLED = GaugeMetric(
    name="epsilon_shuffled",
    labels=("collection",),
    meaning="Certified bound, nats, on what a report of a closed window shows of its client, at the delta of "
    "the collection's budget (1e-6 without one), to those who see only what relays send: readers of "
    "`reports`, counts and estimates. It is that of the smallest number of reports of a window put "
    "in one random order, less the share `forged_share`: of all windows that closed in the last five "
    "minutes, or of the newest one. So `max_over_time` holds for every window of a range, if scrapes are "
    "at most five minutes apart. Against broker, edge or relay's memory nothing is "
    "gained: there a report costs `deniable_epsilon_per_report_nats`. Of several relays the largest counts. "
    "Absent for collections that memoize or take several reports of a client in a window, whose reports are "
    "not independent, and for packs that producers send themselves, whose size is not known.",
    remedy="too large: longer windows, fewer cohorts, or a larger `shuffle_reports`.",
)
SHUFFLED_HONEST = GaugeMetric(
    name="relay_shuffled_reports_honest",
    labels=("collection",),
    meaning="The number of honest reports for which that bound is stated, rounded down to three digits.",
)
LAG = GaugeMetric(
    name="relay_lag",
    unit="records",
    labels=("partition",),
    meaning="Records of `uploads` that this relay has not read yet.",
    remedy="if it grows: more relays, up to one per partition. Final estimates wait for relays, "
    "`wait_seconds` at most; then packs are not counted.",
)
WATERMARK = GaugeMetric(
    name="relay_watermark",
    unit="timestamp_seconds",
    labels=("partition",),
    meaning="Highest append time of `uploads` that this relay has read, unix time.",
)
REWIND = GaugeMetric(
    name="relay_rewind",
    unit="records",
    labels=("partition",),
    meaning="Records of `uploads` that a relay which took the partition over now would read again.",
)
IDS = GaugeMetric(name="relay_upload_ids", meaning="Upload ids in memory, about 36 bytes each.")
WINDOWS = GaugeMetric(
    name="relay_open_windows",
    labels=("collection",),
    meaning="Windows, by partition, that have uploads and take more.",
)
OPENINGS = CounterMetric(
    name="relay_openings",
    meaning="Partitions opened: after a start of the relay, a rebalance or an error.",
    remedy="many: the log says why; each one reads uploads again.",
)
LOSSES = CounterMetric(
    name="relay_losses",
    meaning="Partitions opened without all the records that the relay needed: held-back reports were "
    "lost, and "
    "windows are incomplete.",
    remedy="a longer retention of `uploads`; do not let relays be away for longer. The log says "
    "what was lost.",
)
AWAY = GaugeMetric(
    name="relay_kafka_away",
    meaning="1 while Kafka does not answer or takes no records: uploads wait in `uploads`. Otherwise 0.",
    remedy="the log names the error.",
)
