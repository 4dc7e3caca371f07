"""Columns of a table of estimates: a row for each value of each window."""

from typing import Any

from deniable.analysis.errors import arrow

#: The name of the row of all reports in none of the values, which has `is_other`.
OTHER = "(other)"


def estimate_schema() -> Any:
    """Return the pyarrow.Schema of estimates.

    Times are in UTC, ends excluded. `frequency`, `std_error`, `low` and `high` are fractions of all reports;
    `std_error` is null where no error can be stated, `significant` where nothing was tested. `misfit_error`
    and `unreliable` are null except for RAPPOR of any text. `low_all` and `high_all` hold the shares of all
    values of a window at once. `unbiased` is the unconstrained estimate, a fraction that may be negative or
    above 1; it is null for numbers. All three are null in records of older versions. `reports` is of the
    window, and repeated on each of its rows, as are the columns after it up to `fingerprint`. `discovered_at`
    is null except for texts that growing has found; `fit_p_value`, of the window, in records of older
    versions; `upper`, where a row of a number ends that begins at `value`, also for other mechanisms.
    """
    pa = arrow("a table of estimates")
    moment, number, text = pa.timestamp("us", "UTC"), pa.float64(), pa.string()
    repeated = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("collection", repeated),
            ("window_start", moment),
            ("window_end", moment),
            ("value", text),
            ("frequency", number),
            ("low", number),
            ("high", number),
            ("std_error", number),
            ("significant", pa.bool_()),
            ("count", number),
            ("is_other", pa.bool_()),
            ("misfit_error", number),
            ("unreliable", pa.bool_()),
            ("low_all", number),
            ("high_all", number),
            ("unbiased", number),
            ("reports", pa.int64()),
            ("final", pa.bool_()),
            ("revision", pa.int64()),
            ("mechanism", repeated),
            ("estimator", repeated),
            ("epsilon", number),
            ("fingerprint", repeated),
            ("discovered_at", moment),
            ("fit_p_value", number),
            ("upper", number),
        ]
    )


def repeated_text(codes: Any, texts: list[str]) -> Any:
    """Return a dictionary array: the text of each code, int32 (n,)."""
    pa = arrow("a table of estimates")
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(texts, pa.string()))
