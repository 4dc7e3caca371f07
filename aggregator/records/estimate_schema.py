"""The JSON Schema of a record of the topic `estimates`, generated from its type and the meanings below.

It is committed as `estimate.schema.json` beside this file, for readers of the topic in other languages.
"""

from pathlib import Path
from typing import Any

import msgspec

from deniable.aggregator.records.estimate import RECORD_VERSION, EstimateRecord
from deniable.protocol import wire

PATH = Path(__file__).with_name("estimate.schema.json")
DRAFT = "https://json-schema.org/draft/2020-12/schema"
DESCRIPTION = (
    "One estimate of one window of a collection, or one part of it. Read with isolation level "
    "read_committed. Columns (values, frequency, count, std_error, low, high, significant) have equal "
    "length: entry i of each describes the same value. Frequencies and errors are fractions of all reports. "
    "Fields may be added within a version."
)

MEANINGS = {
    "version": "Version of this schema.",
    "collection": "Name of the collection.",
    "fingerprint": "Hash of everything that affects the meaning of a report; estimates with different "
    "fingerprints are not comparable.",
    "window_start": "First second of the window, unix seconds.",
    "window_end": "First second after the window, unix seconds.",
    "revision": "Packs merged so far; more once a rebuild of lost counts has found fewer packs than were "
    "published. Of the records of a window the highest revision wins, and at equal revisions the final one.",
    "final": "Whether the window is over. If counts change after all, another final record with a higher "
    "revision follows.",
    "reports": "Reports counted; 0, without values, in a window where after a rebuild none counts any more.",
    "packs": "Packs counted: Kafka records of reports.",
    "rejected": "Rejected packs of this window.",
    "mechanism": "How values were randomized.",
    "estimator": "How the frequencies were estimated: mle is the maximum of the likelihood, inv linear "
    "inversion, ems the fixed point of expectation, maximization and smoothing; none without reports.",
    "epsilon": "Privacy loss of one report, nats.",
    "values": "What is estimated, in the order of the collection file; of a number, the lower edges of "
    "rows, as wide as shares can be told apart; the last one ends at density.maximum.",
    "frequency": "Estimated share of the reports.",
    "count": "Estimated number of reports: frequency times reports.",
    "std_error": "Standard error of the unconstrained estimate of the share; null if the counts "
    "carry no information on it.",
    "low": "Lower end of the 95 % interval of the share.",
    "high": "Upper end of that interval.",
    "significant": "Whether the share differs from 0, at a false-discovery rate of 5 % among all values.",
    "omitted": "Values that are in none of the parts up to this one: estimated lower, or too long for a "
    "record.",
    "other": "Reports of no value in the parts up to this one; null if there are none, or "
    "nothing is known about them. If values are omitted, it is a separate estimate, corrected for the noise "
    "that put the others on the list, so the shares need not sum to 1. Of a one-hot-pair, the reports with a "
    "value that a field without `other` does not list.",
    "other.frequency": "Share of the reports; for rappor-k-hot, the mean number of such values in a report.",
    "other.std_error": "Standard error of that; for rappor with omitted candidates, a bound on it; null if "
    "the counts carry no information on it.",
    "other.low": "Lower end of its 95 % interval; absent from records of older versions.",
    "other.high": "Upper end of that interval.",
    "diagnostics": "Figures of the fit, by name. fit_p_value tests if any true values explain the counts: "
    "below 1e-6 these contradict the parameters, and shares mean nothing.",
    "part": "Number of this part. Part 1 holds the largest estimates.",
    "parts": "Number of parts. An estimate is complete when parts 1 to this number exist for the same "
    "collection, window_start, revision and final.",
    "mean": "Mean of a number; null for other mechanisms.",
    "mean.value": "Estimated mean, in the units of the number.",
    "mean.std_error": "Standard error of the mean: noise, and where in their steps the numbers are.",
    "mean.low": "Lower end of the 95 % interval of the mean.",
    "mean.high": "Upper end of the 95 % interval of the mean.",
    "mean.unbiased": "Mean by linear inversion, in the units of the number, so it may be beyond its range: "
    "averages over windows are of these. Absent from records of older versions.",
    "mean.unbiased_error": "Standard error of that, of noise and of whose numbers are reported.",
    "quantiles": "Quantiles of a number, by ascending level; empty for other mechanisms.",
    "misfit_error": "Part of std_error that comes from strings outside the candidates, alike in every "
    "window; its square and that of the sampling error add up. Empty except for rappor.",
    "unreliable": "Whether a value shares bits with strings that nobody listed, so that no error can be "
    "stated: std_error is null, and the interval is from 0 to 1. Empty except for rappor.",
    "unexplained_bits": "Bits set more often than the values and evenly spread others explain, at most "
    "1,000; left out of the estimate. Empty except for rappor.",
    "low_all": "Lower end of an interval of the share: those of all values of the collection hold all shares "
    "at once with 95 %, so also those of a chosen few. Empty in records of older versions.",
    "high_all": "Upper end of that interval.",
    "unbiased": "Unconstrained estimate of the share, so it may be negative or above 1: averages over "
    "windows are of these. Empty for numbers, and in records of older versions.",
    "discovered_at": "When growing found each value first: the end of the window that was looked at, unix "
    "seconds; null for values of the collection file. Empty unless the collection has `grow`.",
    "density": "Of a number, the smooth estimate that rows, mean and quantiles follow from, in fine steps, "
    "without intervals: no step's share is known. Null for others, and in records of older versions, whose "
    "values were fine steps with intervals of a mean over neighbouring ones.",
    "density.minimum": "Lower edge of the first step.",
    "density.maximum": "Upper edge of the last step.",
    "density.frequency": "Estimated share of each step, all of one width.",
    "unexplained_bits.cohort": "Cohort, from 0.",
    "unexplained_bits.bit": "Bit of the Bloom filter, from 0.",
    "quantiles.level": "Share of the true numbers that are below the quantile.",
    "quantiles.value": "Estimated quantile, in the units of the number.",
    "quantiles.low": "Lower end of the 95 % interval of the quantile.",
    "quantiles.high": "Upper end of the 95 % interval of the quantile.",
    "pair": "Of a pair of fields, whose joint table the columns have; null for other mechanisms.",
    "pair.first": "Place of each entry's first value among those of the first margin.",
    "pair.second": "Place of each entry's second value among those of the second margin.",
    "pair.margins": "The estimate of the first field alone, and of the second one. If a one-hot-pair has a "
    "field without `other`, both leave out the reports of `other`, and their shares sum to less than 1.",
    "pair.given_first": "Share of each entry among the reports with the same first value.",
    "pair.given_second": "Share of each entry among the reports with the same second value.",
    "pair.independence": "Test whether the two fields are independent.",
    "margins.name": "Name of the field.",
    "margins.values": "Its values; (other) stands for all that are not listed.",
    "margins.frequency": "Estimated share of the reports with each value.",
    "margins.std_error": "Standard error of that.",
    "margins.low": "Lower end of its 95 % interval.",
    "margins.high": "Upper end of its 95 % interval.",
    "margins.significant": "Whether the share differs from 0, at a false-discovery rate of 5 % among the "
    "values of the field.",
    "given.frequency": "Estimated share of each entry; those of one group sum to 1 if none is omitted.",
    "given.std_error": "Standard error of that; null if noise lets any share be true.",
    "given.low": "Lower end of its 95 % interval.",
    "given.high": "Upper end of its 95 % interval.",
    "independence.statistic": "Chi-square, of k-rr-pair Pearson's of the reported pairs.",
    "independence.degrees": "Its degrees of freedom, of rare values joined; 0 if there are too few reports "
    "for a test. Then p_value is 1.",
    "independence.p_value": "Probability of this statistic or a larger one if the fields are independent.",
    "independence.rejected": "Whether the fields depend on each other, at a false-alarm rate of 5 %.",
}

#: Constraints of fields that Python types do not express.
LIMITS: dict[str, dict[str, Any]] = {
    "version": {"const": RECORD_VERSION},
    "collection": {"pattern": "^[a-z][a-z0-9_-]{0,62}$"},
    "fingerprint": {"pattern": "^[0-9a-f]{16}$"},
    "window_start": {"minimum": 0, "maximum": wire.MAX_WINDOW_START},
    "mechanism": {
        "enum": [
            "k-rr",
            "k-rr-longitudinal",
            "k-rr-pair",
            "one-hot-pair",
            "local-hash",
            "local-hash-longitudinal",
            "prefix-tree",
            "rappor",
            "rappor-one-hot",
            "rappor-k-hot",
            "number",
        ]
    },
    **{name: {"exclusiveMinimum": 0} for name in ("window_end", "epsilon")},
    **{name: {"minimum": 0} for name in ("reports", "packs", "rejected", "omitted")},
    **{name: {"minimum": 1} for name in ("revision", "part", "parts")},
}
#: Constraints of each entry of a column.
ENTRY_LIMITS: dict[str, dict[str, Any]] = {
    **{name: {"minimum": 0, "maximum": 1} for name in ("frequency", "low", "high", "low_all", "high_all")},
    **{name: {"minimum": 0} for name in ("count", "std_error", "misfit_error", "discovered_at")},
}
#: Types of parts of a record by the field that holds them, and constraints of their fields.
PARTS = {
    "other": "Other",
    "mean": "NumberMean",
    "quantiles": "NumberQuantile",
    "pair": "PairRecord",
    "margins": "PairMargin",
    "given": "ConditionalShares",
    "independence": "IndependenceTest",
    "unexplained_bits": "Bit",
    "density": "NumberDensity",
}
PART_LIMITS: dict[str, dict[str, Any]] = {
    **{f"other.{name}": {"minimum": 0} for name in ("frequency", "std_error", "low", "high")},
    "mean.std_error": {"minimum": 0},
    "density.frequency": {"items": {"type": "number", "minimum": 0, "maximum": 1}},
    **{f"unexplained_bits.{name}": {"minimum": 0} for name in ("cohort", "bit")},
    "quantiles.level": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "pair.margins": {"minItems": 2, "maxItems": 2},
    **{f"independence.{name}": {"minimum": 0} for name in ("statistic", "degrees")},
    "independence.p_value": {"minimum": 0, "maximum": 1},
}


def schema() -> dict[str, Any]:
    """The JSON Schema, draft 2020-12, as JSON values."""
    _, components = msgspec.json.schema_components([EstimateRecord], ref_template="#/$defs/{name}")
    record = components.pop("EstimateRecord")
    for name, field in record["properties"].items():
        field |= {"description": MEANINGS[name]} | LIMITS.get(name, {})
        field.pop("default", None)
    for name, limits in ENTRY_LIMITS.items():
        record["properties"][name]["items"] |= limits
    for owner, part in PARTS.items():
        for name, field in components[part]["properties"].items():
            field |= {"description": MEANINGS[f"{owner}.{name}"]} | PART_LIMITS.get(f"{owner}.{name}", {})
            field.pop("default", None)
    return {
        "$schema": DRAFT,
        **record,
        "required": list(record["properties"]),
        "title": "deniable estimate",
        "description": DESCRIPTION,
        "$defs": components,
    }


def text() -> str:
    """The schema as the text of the file."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"
