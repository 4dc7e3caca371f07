"""The period that a command asks for: `--from` and `--to`, or `--last`."""

import reprlib
import time
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

import click

from deniable.aggregator.history.periods import Period, iso, parse_time
from deniable.analysis.periods import check_window, default_seconds, seconds_in
from deniable.estimators.collection import Collection
from deniable.protocol.times import read_zone

ZONE = "deniable.zone"  # in the meta of click's context

PeriodCommand = Callable[..., Any]


class Duration(click.ParamType):
    """A number of minutes, hours, days or weeks, in seconds."""

    name = "DURATION"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        """Return seconds."""
        seconds = seconds_in(str(value))
        if seconds is None:
            self.fail(
                f"must be a whole number from 1 to 999999 with m, h, d or w, such as 90m, 24h, 7d, 4w, got "
                f"{reprlib.repr(str(value))}",
                parameter,
                context,
            )
        return seconds


def zone_option(command: PeriodCommand) -> PeriodCommand:
    """Add `--tz`, for `zone_asked`; eager, so that options of any order are read in it."""
    return click.option(
        "--tz",
        metavar="ZONE",
        is_eager=True,
        expose_value=False,
        callback=_note_zone,
        help="Zone of times, days, weeks and months that name none, such as Europe/Berlin.  "
        "[default: this machine's]",
    )(command)


def zone_asked() -> tzinfo | None:
    """Return the zone of `--tz`; None for this machine's."""
    context = click.get_current_context(silent=True)
    zone: tzinfo | None = context.meta.get(ZONE) if context else None
    return zone


def _note_zone(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    try:
        context.meta[ZONE] = None if value is None else read_zone(value)
    except ValueError as error:
        raise click.BadParameter(
            f"must be the name of a time zone, such as Europe/Berlin or UTC, got {reprlib.repr(value)}; on a "
            "machine without time zones: pip install tzdata",
            context,
            parameter,
        ) from error


def period_options(command: PeriodCommand) -> PeriodCommand:
    """Add the options; the command takes `start`, `end` and `last`, to pass to `period_asked`."""
    return _with_options(command, "  [default: 1d]")


def optional_period_options(command: PeriodCommand) -> PeriodCommand:
    """As `period_options`, of a command that without any of them takes all there is."""
    return _with_options(command, "  [default: all that there is; 1d with --to]")


def _with_options(command: PeriodCommand, default: str) -> PeriodCommand:
    for option in (
        zone_option,
        click.option(
            "--last",
            type=Duration(),
            help=f"The period of this length until now, such as 90m, 24h, 7d, 4w.{default}",
        ),
        click.option(
            "--to",
            "end",
            metavar="TIME",
            help="As --from; windows that end later are left out.  [default: now]",
        ),
        click.option(
            "--from",
            "start",
            metavar="TIME",
            help="ISO 8601 such as 2026-01-31T00:00:00+01:00, in local time 2026-01-31, 2026-W05 (its "
            "Monday) or '2026-01-31 09:00', or unix seconds such as 1769817600.",
        ),
    ):
        command = option(command)
    return command


def period_asked(collection: Collection, start: str | None, end: str | None, last: int | None) -> Period:
    """Return the period between two times, or of the last seconds.

    Parameters
    ----------
    collection : of whose windows at least one must be wholly in the period.
    start, end : as given on the command line. Without `start`, the period has the length `last`.
    last : seconds; None for a day, or as long as is needed to hold a window.

    Raises
    ------
    click.UsageError if a time is invalid or too much is given; WrongArgumentError if no window is in the
    period.
    """
    if start is not None and last is not None:
        raise click.UsageError("give either --from or --last")
    zone = zone_asked()
    try:
        until = int(time.time()) if end is None else parse_time("to", end, zone, takes_local=True)
        length = default_seconds(collection) if last is None else last
        since = max(0, until - length) if start is None else parse_time("from", start, zone, takes_local=True)
        if since >= until:
            raise ValueError(_out_of_order(start, end, since, until))
    except ValueError as error:
        raise click.UsageError(f"--{error}") from error
    period = Period(since, until)
    check_window(collection, period)
    return period


def _out_of_order(start: str | None, end: str | None, since: int, until: int) -> str:
    """Name the options that were given, with times as they were typed, and in UTC where that differs."""
    first = _time_shown(start, since)
    if end is None:
        return f"from must be before now ({iso(until)}), got {first}"
    if start is None:
        return f"to must be after the beginning of 1970, got {_time_shown(end, until)}"
    return f"from must be before --to {_time_shown(end, until)}, got {first}"


def _time_shown(typed: str | None, moment: int) -> str:
    return iso(moment) if typed in (None, iso(moment)) else f"{typed} ({iso(moment)})"
