"""The metrics of an edge. No label holds an address, an upload's id or anything that a device chose."""

from deniable.protocol.metric import CounterMetric, GaugeMetric, HistogramMetric

REQUESTS = CounterMetric(
    name="edge_requests",
    meaning="Requests answered by an edge, by path (reports, collections, probes, try, other) and status.",
    remedy="Many 4xx: see deniable_edge_groups_rejected_total, and docs/edge.md for the statuses.",
    labels=("path", "status"),
)
UPLOADS = CounterMetric(
    name="edge_uploads",
    meaning="Uploads that Kafka has, those that a device repeated included.",
)
UPLOAD_BYTES = CounterMetric(name="edge_upload", unit="bytes", meaning="Bytes of the uploads that Kafka has.")
GROUPS = CounterMetric(name="edge_groups", meaning="Groups of the uploads that Kafka has.")
REPORTS = CounterMetric(
    name="edge_reports", meaning="Reports of the uploads that Kafka has, those repeated included."
)
GROUPS_REJECTED = CounterMetric(
    name="edge_groups_rejected",
    meaning="Groups that an edge did not take, by reason: unknown_collection, malformed, bad_cohort, "
    "bad_value, too_early, too_late.",
    remedy="unknown_collection: devices have an older list of collections, which passes. too_early and "
    "too_late: clocks of devices, or delayed uploads; compare the edge's own clock. Others: a client with a "
    "defect, or forged uploads.",
    labels=("reason",),
)
FRAMES = CounterMetric(
    name="edge_frames",
    meaning="Records that an edge has written. Uploads per frame show how many share the cost of one.",
)
FRAME_FAILURES = CounterMetric(
    name="edge_frame_failures",
    meaning="Records that Kafka did not acknowledge; their uploads are sent again, or answered 503.",
    remedy="Look at the brokers, and at the edge's log.",
)
ANSWER_SECONDS = HistogramMetric(
    name="edge_answer",
    unit="seconds",
    meaning="Time from an upload's last byte to its answer, when Kafka has it or the edge gives up.",
    remedy="Look at the brokers' time for acks=all; add edges if their processors are busy.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
QUEUE_BYTES = GaugeMetric(
    name="edge_queue",
    unit="bytes",
    meaning="Uploads that wait for Kafka's acknowledgement. Above 32 MiB an edge answers 503.",
    remedy="Look at the brokers; add edges.",
)
CONNECTIONS = GaugeMetric(
    name="edge_connections",
    meaning="Open connections of clients.",
    remedy="Near the limit in the edge's first log line: raise its limit of open files, or add edges.",
)
CONNECTIONS_REFUSED = CounterMetric(
    name="edge_connections_refused",
    meaning="Connections answered 503 and closed, because as many were open as are allowed.",
    remedy="Raise the limit of open files (LimitNOFILE), add edges, or close idle connections in the proxy.",
)
KAFKA_AWAY = GaugeMetric(
    name="edge_kafka_away",
    meaning="1 if uploads for some partition are answered 503, because Kafka does not take them.",
    remedy="Look at the reasons of /readyz; run deniable doctor.",
)
