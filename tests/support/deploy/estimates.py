"""Sample estimate records."""

from deniable.aggregator.records.estimate import EstimateRecord


def record(values: list[str], frequency: list[float], **changed: object) -> EstimateRecord:
    size = len(values)
    fields: dict[str, object] = {
        "version": 1,
        "collection": "carrier",
        "fingerprint": "0" * 16,
        "window_start": 60,
        "window_end": 120,
        "revision": 3,
        "final": False,
        "reports": 12_000,
        "packs": 3,
        "rejected": 0,
        "mechanism": "k-rr",
        "estimator": "mle",
        "epsilon": 1.0,
        "values": values,
        "frequency": frequency,
        "count": [12_000 * share for share in frequency],
        "std_error": [0.01] * size,
        "low": [share - 0.02 for share in frequency],
        "high": [share + 0.02 for share in frequency],
        "significant": [share > 0.05 for share in frequency],
        "omitted": 0,
        "other": None,
        "diagnostics": {},
    }
    return EstimateRecord(**{**fields, **changed})
