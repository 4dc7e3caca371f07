"""A part that fails is told in the results; the others are measured all the same."""

import traceback
from types import ModuleType

from bench.comparison.report.figure import ResultsPart
from bench.comparison.timing.contestant import ContestantError
from bench.comparison.timing.rounds import Scale


def attempt(module: ModuleType, scale: Scale) -> ResultsPart:
    """What the module's `measure` finds, or a part whose goals are not judged, and why."""
    try:
        part: ResultsPart = module.measure(scale)
    except Exception as error:  # noqa: BLE001 - what the others have measured in minutes is not lost by it
        name = module.__name__.rpartition(".")[2]
        where = traceback.extract_tb(error.__traceback__)[-1]
        known = isinstance(error, ContestantError)
        why = error if known else f"{type(error).__name__} at {where.name}, line {where.lineno}: {error}"
        return ResultsPart(name, "", unjudged=[f"{name}, all of it: {why}"])
    return part
