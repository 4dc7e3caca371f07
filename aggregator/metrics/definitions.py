"""The metrics of a worker. No label holds a cohort, a client, or a value that came from input.

Rule: counters count committed packs only, so they are not incremented twice after a failure; see
`deniable.aggregator.ledger.outcomes`.
"""

from deniable.aggregator.ledger.acceptance import REASONS
from deniable.aggregator.records.estimate import SETTLE_SECONDS
from deniable.estimators.canary_fit import FALSE_ALARMS_A_YEAR
from deniable.estimators.collection import CHANGE_ALARMS_A_YEAR
from deniable.protocol.metric import CounterMetric, GaugeMetric, HistogramMetric

VALUES_SHOWN = 20  # per estimate
CHANGE_WINDOWS = 60  # after an alarm, in which a change is shown
MOST_WATCHED = 200  # values of a collection whose changes a worker looks for
EDGES_SHOWN = 32  # of a number's distribution
MOST_VALUES = 2500  # distinct values per worker process, over all collections; four series each

DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
DELAYS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

PACKS = CounterMetric(
    name="packs",
    labels=("result",),
    meaning="Packs read from the log by result: counted, rejected. Packs of a transaction that a rebalance "
    "interrupts after its commit may be missing from this counter, but are in the counts.",
)
PACKS_REJECTED = CounterMetric(
    name="packs_rejected",
    labels=("reason",),
    meaning=f"Packs rejected by reason: {', '.join(REASONS)}.",
    remedy="duplicate: none, a resent pack counts once. too_late: a longer `grace_seconds`. "
    "unknown_collection: the same file for producers and workers. window_full: a larger `window_packs`. "
    "Others: see who else writes to `reports`.",
)
REPORTS = CounterMetric(
    name="reports",
    labels=("collection", "result"),
    meaning="Reports by result: counted, rejected. Rejected packs are included if their collection is known.",
)
RESYNCS = CounterMetric(
    name="resyncs",
    meaning="Ledgers that were lost and reopened: a few during a rebalance, many while Kafka refuses.",
    remedy="the log says why each was lost.",
)
POSITION = GaugeMetric(
    name="position", unit="records", labels=("partition",), meaning="Next offset of `reports` to count."
)
LAG = GaugeMetric(
    name="lag",
    unit="records",
    labels=("partition",),
    meaning="Records of `reports` not counted yet.",
    remedy="if it grows: more workers, up to one per partition; larger packs.",
)
STALLED = GaugeMetric(
    name="stalled",
    labels=("partition",),
    meaning="1 while the worker cannot store anything, or stores nothing although records wait: it is "
    "not ready. Otherwise 0.",
    remedy="see `/readyz` and the log for the reason.",
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
    remedy="a second or more: check the broker's disks, or shorten `retention_seconds`.",
)
LOOP_DELAY = HistogramMetric(
    name="loop_delay",
    unit="seconds",
    buckets=DELAYS,
    meaning="Delay of the event loop; large delays also delay heartbeats.",
    remedy="a second or more: the machine is overloaded.",
)
ESTIMATE = HistogramMetric(
    name="estimate", unit="seconds", buckets=DURATIONS, meaning="Time to estimate one window."
)
GROWING = HistogramMetric(
    name="growing",
    unit="seconds",
    buckets=DURATIONS,
    meaning="Time to look for texts at one final window. Only collections with `grow`.",
)
ESTIMATE_FAILURES = CounterMetric(
    name="estimate_failures",
    labels=("collection",),
    meaning="Windows whose counts could not be estimated.",
    remedy="run `deniable replay`; if it finds that `counts` matches the log, report a bug.",
)
WINDOWS = GaugeMetric(
    name="windows",
    labels=("collection", "state"),
    meaning="Windows with stored counts, by state: final, with a final estimate; otherwise open until "
    f"{SETTLE_SECONDS} s after their grace, by this worker's clock, and then late, or small if they have "
    "fewer than `minimum_reports`. Exported by the worker that estimates the collection.",
    remedy="late: every partition needs a worker that is ready; if records or counts were lost, a window "
    "stays late until it is deleted.",
)
WINDOWS_LOST = CounterMetric(
    name="windows_lost",
    labels=("collection",),
    meaning="Windows whose counts were deleted before their final estimate was published.",
    remedy="a `retention_seconds` longer than the longest outage of the workers, unless records were lost or "
    "counts could not be estimated.",
)
FINALS_REVISED = CounterMetric(
    name="finals_revised",
    labels=("collection",),
    meaning="Final estimates that replaced an earlier one because counts had changed, as a rebuild may do.",
    remedy="`deniable replay`, and report it if nothing was rebuilt.",
)
ESTIMATE_FREQUENCY = GaugeMetric(
    name="estimate_frequency",
    unit="ratio",
    labels=("collection", "value"),
    meaning=f"Estimated share of the reports, for the {VALUES_SHOWN} largest values of the newest window. "
    "Only values from the collection file. Of a number, `value` is the lower edge of a row, which ends "
    "where the next one begins.",
)
ESTIMATE_STD_ERROR = GaugeMetric(
    name="estimate_std_error",
    unit="ratio",
    labels=("collection", "value"),
    meaning="Standard error of that share; +Inf if the counts carry no information on it. The 95 % "
    "interval is not symmetric about the share; the next two metrics are its ends.",
)
ESTIMATE_LOW = GaugeMetric(
    name="estimate_low",
    unit="ratio",
    labels=("collection", "value"),
    meaning="Lower end of that share's 95 % interval, as in the record. The interval is meant for values "
    "chosen beforehand; it covers the truth less often for values that noise raised into the top list; "
    "`low_all` and `high_all` of the record hold for all values at once.",
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
    meaning="Estimated share of `other`, as in the record. Absent if the record has none.",
)
ESTIMATE_OTHER_STD_ERROR = GaugeMetric(
    name="estimate_other_std_error",
    unit="ratio",
    labels=("collection",),
    meaning="Standard error of that share; +Inf if the counts carry no information on it.",
)
ESTIMATE_OTHER_LOW = GaugeMetric(
    name="estimate_other_low",
    unit="ratio",
    labels=("collection",),
    meaning="Lower end of that share's 95 % interval, as in the record.",
)
ESTIMATE_OTHER_HIGH = GaugeMetric(
    name="estimate_other_high",
    unit="ratio",
    labels=("collection",),
    meaning="Upper end of that interval.",
)
ESTIMATE_MEAN = GaugeMetric(
    name="estimate_mean",
    labels=("collection",),
    meaning="Estimated mean of a number, in its units. Only collections of mechanism `number`.",
)
ESTIMATE_MEAN_LOW = GaugeMetric(
    name="estimate_mean_low",
    labels=("collection",),
    meaning="Lower end of that mean's 95 % interval.",
)
ESTIMATE_MEAN_HIGH = GaugeMetric(
    name="estimate_mean_high",
    labels=("collection",),
    meaning="Upper end of that interval.",
)
ESTIMATE_QUANTILE = GaugeMetric(
    name="estimate_quantile",
    labels=("collection", "level"),
    meaning="Estimated quantile of a number, in its units; level 0.5 is the median. Only collections of "
    "mechanism `number`.",
)
ESTIMATE_QUANTILE_LOW = GaugeMetric(
    name="estimate_quantile_low",
    labels=("collection", "level"),
    meaning="Lower end of that quantile's 95 % interval.",
)
ESTIMATE_QUANTILE_HIGH = GaugeMetric(
    name="estimate_quantile_high",
    labels=("collection", "level"),
    meaning="Upper end of that interval.",
)
ESTIMATE_BELOW = GaugeMetric(
    name="estimate_below",
    unit="ratio",
    labels=("collection", "edge"),
    meaning="Estimated share of numbers that are at most `edge`, in the newest window: the distribution at "
    f"{EDGES_SHOWN} evenly spaced edges, or at all rows if there are fewer. The difference of two edges is "
    "the share between them. Only collections of mechanism `number`.",
)
ESTIMATE_INDEPENDENCE_P_VALUE = GaugeMetric(
    name="estimate_independence_p_value",
    labels=("collection",),
    meaning="Probability of reports that depend as much on each other as those of the newest estimate, or "
    "more, if the two fields of a pair are independent; 1 if there are too few reports for a test. Only "
    "collections of pairs of fields.",
)
ESTIMATE_FIT_P_VALUE = GaugeMetric(
    name="estimate_fit_p_value",
    labels=("collection",),
    meaning="Bound on the probability that honest reports give a count as far outside of what any true "
    "values explain as one of the newest estimate. Below 1e-6 the counts contradict the parameters, and the "
    "estimate means nothing.",
    remedy="below 1e-6, look for reports that are forged, or randomized otherwise than declared: `deniable "
    "detect`.",
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
    meaning=f"Values among the {VALUES_SHOWN} largest of an estimate that were not exported. A worker "
    f"exports at most {MOST_VALUES:,} different values, the same number for each collection; if a collection "
    "has more values than that, only those that were significant at least once.",
    remedy="read them from the topic `estimates`.",
)
SHARE_CHANGE = GaugeMetric(
    name="share_change",
    unit="ratio",
    labels=("collection", "value"),
    meaning="By how much the share of a value changed: its mean since the change minus that before. Present "
    f"for {CHANGE_WINDOWS} windows after the alarm, on every worker; absent while no share changes, but for "
    f"{CHANGE_ALARMS_A_YEAR:g} false alarms a year and collection at most, or `change_alarms_a_year`. For "
    f"collections of at most {MOST_WATCHED} values; of numbers see `deniable_mean_change`.",
    remedy="`deniable changes` prints the changes of any period.",
)
SHARE_CHANGE_LOW = GaugeMetric(
    name="share_change_low",
    unit="ratio",
    labels=("collection", "value"),
    meaning="Lower end of the 95 % interval of that change.",
)
SHARE_CHANGE_HIGH = GaugeMetric(
    name="share_change_high",
    unit="ratio",
    labels=("collection", "value"),
    meaning="Upper end of that interval.",
)
SHARE_CHANGE_SINCE = GaugeMetric(
    name="share_change_since",
    unit="timestamp_seconds",
    labels=("collection", "value"),
    meaning="Start of the first window after that change, as estimated, unix time.",
)
MEAN_CHANGE = GaugeMetric(
    name="mean_change",
    labels=("collection",),
    meaning="By how much the mean of a number changed, in its units. Present and absent as "
    "`deniable_share_change_ratio`. Only collections of mechanism `number`.",
    remedy="`deniable changes` prints the changes of any period.",
)
MEAN_CHANGE_LOW = GaugeMetric(
    name="mean_change_low",
    labels=("collection",),
    meaning="Lower end of the 95 % interval of that change.",
)
MEAN_CHANGE_HIGH = GaugeMetric(
    name="mean_change_high",
    labels=("collection",),
    meaning="Upper end of that interval.",
)
MEAN_CHANGE_SINCE = GaugeMetric(
    name="mean_change_since",
    unit="timestamp_seconds",
    labels=("collection",),
    meaning="Start of the first window after that change, as estimated, unix time.",
)
LIST_CHI_SQUARE = GaugeMetric(
    name="list_chi_square",
    unit="ratio",
    labels=("collection",),
    meaning="Squared residuals of the newest estimate's bits per degree of freedom: about 1 if candidates "
    "explain them, more if frequent strings are not listed. Only collections of mechanism `rappor`.",
    remedy="above `deniable_list_chi_square_limit_ratio`: add what is missing to the candidates. `deniable "
    "decode` with other candidates lists the bits that nobody explains.",
)
LIST_CHI_SQUARE_LIMIT = GaugeMetric(
    name="list_chi_square_limit",
    unit="ratio",
    labels=("collection",),
    meaning="What that ratio exceeds in one of a million windows if the list is complete.",
)
LIST_UNEXPLAINED_BITS = GaugeMetric(
    name="list_unexplained",
    labels=("collection",),
    meaning="Bits of the newest estimate that unlisted strings raise, over all cohorts; they are left out. "
    "Only collections of mechanism `rappor`.",
)
LIST_UNRELIABLE_VALUES = GaugeMetric(
    name="list_unreliable_values",
    labels=("collection",),
    meaning="Values in the record of the newest estimate that share their bits with unlisted strings, so "
    "that no error can be stated. Only collections of mechanism `rappor`.",
)
LIST_UNLISTED_TEXTS = GaugeMetric(
    name="list_unlisted_texts",
    labels=("collection",),
    meaning="Frequent texts that are plain in the newest estimate's counts, and are no candidates; at most 8 "
    "are sought. Only collections of mechanism `local-hash`, `local-hash-longitudinal` and `prefix-tree`.",
    remedy="above 0: find them with `deniable decode` and other candidates, and add them to the candidates.",
)
LIST_UNLISTED = GaugeMetric(
    name="list_unlisted",
    unit="ratio",
    labels=("collection",),
    meaning="Share of the reports that these texts have together.",
)
FOUND_TEXTS = GaugeMetric(
    name="found_texts",
    labels=("collection",),
    meaning="Texts that growing has found, and the newest estimate lists. Only collections with `grow`.",
)
CANARY_CHI_SQUARE = GaugeMetric(
    name="canary_chi_square",
    labels=("collection",),
    meaning="Distance of a canary's unconstrained estimate from the distribution that was sent, in the "
    "last published final window with at least `minimum_reports`. Absent for other collections.",
    remedy="above `deniable_canary_threshold`: run `deniable replay`. If the counts match the log, "
    "randomization or estimation is wrong, or someone else sends to the collection.",
)
CANARY_THRESHOLD = GaugeMetric(
    name="canary_threshold",
    labels=("collection",),
    meaning=f"Threshold that the chi-square exceeds by chance once in {1 / FALSE_ALARMS_A_YEAR:g} years, "
    "over all windows of the collection.",
)
CANARY_WINDOWS = CounterMetric(
    name="canary_windows",
    labels=("collection", "result"),
    meaning="Final windows of a canary with at least `minimum_reports` by result: inside, up to the "
    "threshold; beyond. Includes windows whose figure was replaced before a scrape. Absent for other "
    "collections.",
    remedy="beyond: as for `deniable_canary_chi_square`.",
)
CANARY_WINDOW = GaugeMetric(
    name="canary_window",
    unit="seconds",
    labels=("collection",),
    meaning="Length of a canary's windows; every worker exports it. Absent for other collections.",
    remedy="if `deniable_estimate_window_start_timestamp_seconds` is several windows ago, or absent, no "
    "canary runs: start `deniable canary`.",
)
EPSILON_PER_REPORT = GaugeMetric(
    name="epsilon_per_report", unit="nats", labels=("collection",), meaning="Privacy loss of one report."
)
EPSILON_PERMANENT = GaugeMetric(
    name="epsilon_permanent",
    unit="nats",
    labels=("collection",),
    meaning="Bound on the privacy loss of all reports of one client whose value stays the same. Absent if "
    "every report adds to the loss: then only a budget bounds it.",
)
EPSILON_LIFETIME = GaugeMetric(
    name="epsilon_lifetime",
    unit="nats",
    labels=("collection",),
    meaning="Bound on the privacy loss of all reports of one client whatever its values do, if it is known "
    "when they change; with `changes` in a budget, as producers in Python keep them. Absent if nothing "
    "bounds it: then only a budget does.",
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
    meaning="Bound on the total privacy loss of one client's reports in a period, at the budget's delta: "
    "with `values: any` whatever its values do, if it is known when they change, with `values: unchanged` "
    "while its value stays the same. This metric and those below are absent for `budget: none`: then only "
    "`deniable_epsilon_permanent_nats` and `deniable_epsilon_lifetime_nats` bound the total loss, if they "
    "exist.",
)
BUDGET_UNLIMITED = GaugeMetric(
    name="budget_unlimited",
    labels=("collection",),
    meaning="1 if any number of reports of one client is within the budget, because permanent responses are: "
    "with `values: any` whatever its values do, with `values: unchanged` while its value stays the same. "
    "Then no client is refused, but for browsers where the budget has `changes`. Otherwise 0.",
)
BUDGET_REPORTS_BOUND = GaugeMetric(
    name="budget_reports_bound",
    labels=("collection",),
    meaning="Most reports that its limits have allowed one client in the current period so far; rounded up, "
    "by at most 3 %, above 64. Clients that report rarely have sent fewer.",
)
BUDGET_USED_BOUND = GaugeMetric(
    name="budget_used_bound",
    unit="nats",
    labels=("collection",),
    meaning="Total privacy loss of that many reports of one client, at the budget's delta: with "
    "`values: unchanged` while its value stays the same, with `any` whatever its values do, if it is known "
    "when they change. Within that, no client has spent more so far under the current parameters.",
)
BUDGET_USED_BOUND_RATIO = GaugeMetric(
    name="budget_used_bound",
    unit="ratio",
    labels=("collection",),
    meaning="The same as a share of the budget. At most 1, since producers refuse reports beyond the budget.",
    remedy="none if `deniable_budget_unlimited` is 1: no client is refused. Otherwise, near 1, clients that "
    "report in every window are refused until the "
    "period ends: a larger budget, a shorter period, or longer windows.",
)
BUDGET_USED_ANY = GaugeMetric(
    name="budget_used_any",
    unit="nats",
    labels=("collection",),
    meaning="Total privacy loss of `deniable_budget_reports_bound` reports of one client whatever its values "
    "do, at the budget's delta (of RAPPOR, and of all permanent responses together, if it is known when they "
    "change). Above the budget only with `values: unchanged`, which does not limit it.",
)
