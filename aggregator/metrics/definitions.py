"""The metrics of a worker. No label holds a cohort, a client, or a value that came from input.

Rule: counters count committed packs only, so they are not incremented twice after a failure; see
`aggregator.ledger.outcomes`.
"""

from aggregator.ledger.acceptance import REASONS
from aggregator.records.estimate import SETTLE_SECONDS
from estimators.canary import FALSE_ALARMS_A_YEAR
from producers.metrics.metric import CounterMetric, GaugeMetric, HistogramMetric

VALUES_SHOWN = 20  # of one estimate
MOST_VALUES = 2500  # different ones in a worker's life, of all collections together; four series each

DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
DELAYS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

PACKS = CounterMetric(
    name="packs",
    labels=("result",),
    meaning="Packs read from the log by result: counted, rejected; not those, once in a while, whose "
    "transaction was done when a rebalance interrupted it, though they count.",
)
PACKS_REJECTED = CounterMetric(
    name="packs_rejected",
    labels=("reason",),
    meaning=f"Packs rejected by reason: {', '.join(REASONS)}.",
    remedy="duplicate: none, a pack that was resent counts once. too_late: a longer `grace_seconds`. "
    "unknown_collection: the same file for producers and workers. window_full: a larger `window_packs`. "
    "Others: see who else writes to `reports`.",
)
REPORTS = CounterMetric(
    name="reports",
    labels=("collection", "result"),
    meaning="Reports by result: counted, rejected. Those of rejected packs where the collection is known.",
)
RESYNCS = CounterMetric(
    name="resyncs",
    meaning="Ledgers that were lost and opened again: some in a rebalance, many while Kafka refuses.",
    remedy="the log says why each was lost.",
)
POSITION = GaugeMetric(
    name="position", unit="records", labels=("partition",), meaning="Next offset of `reports` to count."
)
LAG = GaugeMetric(
    name="lag",
    unit="records",
    labels=("partition",),
    meaning="Records of `reports` that are not counted yet.",
    remedy="where it grows: more workers, up to one a partition; larger packs.",
)
STALLED = GaugeMetric(
    name="stalled",
    labels=("partition",),
    meaning="1 while nothing can be stored, or records wait and none is: the worker is not ready. Else 0.",
    remedy="`/readyz` and the log say what it waits for.",
)
WATERMARK = GaugeMetric(
    name="watermark",
    unit="timestamp_seconds",
    labels=("partition",),
    meaning="Highest append time counted, unix time.",
)
CHECKPOINT = HistogramMetric(
    name="checkpoint",
    unit="seconds",
    buckets=DURATIONS,
    meaning="Time to store a ledger's changes.",
    remedy="seconds and more: see the broker's disks, or shorten `retention_seconds`.",
)
LOOP_DELAY = HistogramMetric(
    name="loop_delay",
    unit="seconds",
    buckets=DELAYS,
    meaning="How late the event loop woke a task: what no step may keep the heartbeats waiting for.",
    remedy="a second and more: the machine is overloaded.",
)
ESTIMATE = HistogramMetric(
    name="estimate", unit="seconds", buckets=DURATIONS, meaning="Time to estimate one window."
)
ESTIMATE_FAILURES = CounterMetric(
    name="estimate_failures",
    labels=("collection",),
    meaning="Windows whose counts could not be estimated.",
    remedy="`deniable replay` says whether `counts` is as the log has it; if so, this is a defect to report.",
)
WINDOWS = GaugeMetric(
    name="windows",
    labels=("collection", "state"),
    meaning="Windows whose counts are kept, by state: final, with a final estimate; of the others open until "
    f"{SETTLE_SECONDS} s after their grace, by this worker's clock, and then late, or small with fewer than "
    "`minimum_reports`. Told by the worker that estimates the collection.",
    remedy="late: every partition needs a worker that is ready; where records or counts were lost a window "
    "stays late until it is deleted.",
)
WINDOWS_LOST = CounterMetric(
    name="windows_lost",
    labels=("collection",),
    meaning="Windows whose counts were deleted before a final estimate of them was published.",
    remedy="a `retention_seconds` longer than the longest outage of the workers, unless records were lost or "
    "counts could not be estimated.",
)
FINALS_REVISED = CounterMetric(
    name="finals_revised",
    labels=("collection",),
    meaning="Final estimates that replaced one, since counts had changed.",
    remedy="set the brokers' clocks right.",
)
ESTIMATE_FREQUENCY = GaugeMetric(
    name="estimate_frequency",
    unit="ratio",
    labels=("collection", "value"),
    meaning=f"Estimated share of the reports, of the {VALUES_SHOWN} largest values in the newest window. "
    "Values are those of the collection file.",
)
ESTIMATE_STD_ERROR = GaugeMetric(
    name="estimate_std_error",
    unit="ratio",
    labels=("collection", "value"),
    meaning="Standard error of that share; +Inf if the counts carry no information on it. The 95 % "
    "interval is not symmetric about the share: take its ends, which follow.",
)
ESTIMATE_LOW = GaugeMetric(
    name="estimate_low",
    unit="ratio",
    labels=("collection", "value"),
    meaning="Lower end of that share's 95 % interval, as the record of the topic has it. It is that of a "
    "value chosen beforehand, and holds the truth less often where noise made a value one of the largest.",
)
ESTIMATE_HIGH = GaugeMetric(
    name="estimate_high",
    unit="ratio",
    labels=("collection", "value"),
    meaning="Upper end of that interval.",
)
ESTIMATE_OTHER_FREQUENCY = GaugeMetric(
    name="estimate_other_frequency",
    unit="ratio",
    labels=("collection",),
    meaning="Estimated share of `other`, as the record of the topic has it. Absent where there is none.",
)
ESTIMATE_OTHER_STD_ERROR = GaugeMetric(
    name="estimate_other_std_error",
    unit="ratio",
    labels=("collection",),
    meaning="Standard error of that share; +Inf if the counts carry no information on it.",
)
ESTIMATE_REPORTS = GaugeMetric(
    name="estimate_reports", labels=("collection",), meaning="Reports behind the newest estimate."
)
ESTIMATE_WINDOW_START = GaugeMetric(
    name="estimate_window_start",
    unit="timestamp_seconds",
    labels=("collection",),
    meaning="Start of the newest estimate's window, unix time.",
)
ESTIMATE_VALUES_DROPPED = CounterMetric(
    name="estimate_values_dropped",
    labels=("collection",),
    meaning=f"Values among the {VALUES_SHOWN} largest of an estimate that were not shown. A worker shows "
    f"{MOST_VALUES:,} different values in its life, the same number of each collection; where a collection "
    "has more values than that, only those that were significant once.",
    remedy="read the topic `estimates`, which has them.",
)
CANARY_CHI_SQUARE = GaugeMetric(
    name="canary_chi_square",
    labels=("collection",),
    meaning="How far the unconstrained estimate of a canary is from the distribution of what was sent, in "
    "the final window published last of those with at least `minimum_reports`. Absent for other collections.",
    remedy="above `deniable_canary_threshold`: `deniable replay` says whether the counts are as the log has "
    "them; if so, randomization or estimation is wrong, or someone else sends to the collection.",
)
CANARY_THRESHOLD = GaugeMetric(
    name="canary_threshold",
    labels=("collection",),
    meaning=f"What that exceeds by chance {FALSE_ALARMS_A_YEAR:g} times a year, all windows taken together.",
)
CANARY_WINDOWS = CounterMetric(
    name="canary_windows",
    labels=("collection", "result"),
    meaning="Final windows of a canary with at least `minimum_reports` by result: inside, up to that "
    "threshold; beyond. It has those too whose figure was replaced before it was scraped. Absent for other "
    "collections.",
    remedy="beyond: as above.",
)
CANARY_WINDOW = GaugeMetric(
    name="canary_window",
    unit="seconds",
    labels=("collection",),
    meaning="Length of a canary's windows, exported by every worker. Absent for other collections.",
    remedy="where `deniable_estimate_window_start_timestamp_seconds` is several of them ago, or absent, "
    "nothing is watched: start `deniable canary`.",
)
EPSILON_PER_REPORT = GaugeMetric(
    name="epsilon_per_report", unit="nats", labels=("collection",), meaning="Privacy loss of one report."
)
EPSILON_PERMANENT = GaugeMetric(
    name="epsilon_permanent",
    unit="nats",
    labels=("collection",),
    meaning="Bound on the privacy loss of all reports of one client whose value stays the same. Absent where "
    "each report costs as much again: then only a budget bounds it.",
)
RHO_PER_REPORT = GaugeMetric(
    name="rho_per_report",
    unit="nats",
    labels=("collection",),
    meaning="Privacy loss of one report as rho of zero-concentrated differential privacy; rhos of reports "
    "that are randomized independently add up.",
)
BUDGET_EPSILON = GaugeMetric(
    name="budget_epsilon",
    unit="nats",
    labels=("collection",),
    meaning="What the reports of one client may cost together in a period, at the budget's delta. This and "
    "what follows is absent for `budget: none`: what many reports cost is then bounded by "
    "`deniable_epsilon_permanent_nats` where there is one, else by nothing.",
)
BUDGET_REPORTS_BOUND = GaugeMetric(
    name="budget_reports_bound",
    labels=("collection",),
    meaning="Most reports that its limits have let one client send in the present period so far; above 64 "
    "rounded up, by up to 3 %. Who sends seldom has sent fewer.",
)
BUDGET_USED_BOUND = GaugeMetric(
    name="budget_used_bound",
    unit="nats",
    labels=("collection",),
    meaning="What this many reports of one client about one value cost together, at the budget's delta by "
    "exact composition: no client has spent more so far, under the present parameters.",
)
BUDGET_USED_BOUND_RATIO = GaugeMetric(
    name="budget_used_bound",
    unit="ratio",
    labels=("collection",),
    meaning="That share of the budget. It never exceeds 1, since producers refuse what would.",
    remedy="none where `deniable_epsilon_permanent_nats` is within the budget: any number of reports is, and "
    "nobody is refused. Else near 1 clients that answer in every window are refused until the period ends: a "
    "larger budget, a shorter period, or longer windows.",
)
