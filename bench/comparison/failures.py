"""Run one part of the benchmark; a failure becomes a line of the results and stops no other part."""

import traceback
from types import ModuleType

from bench.comparison.report.figure import ResultsPart
from bench.comparison.timing.contestant import ContestantError
from bench.comparison.timing.rounds import Scale


def attempt(module: ModuleType, scale: Scale) -> ResultsPart:
    """Return what the module's `measure` finds, or on failure a part with the reason and no figures."""
    try:
        part: ResultsPart = module.measure(scale)
    except Exception as error:  # noqa: BLE001 - the other parts measure for minutes, and must not be lost
        name = module.__name__.rpartition(".")[2]
        where = traceback.extract_tb(error.__traceback__)[-1]
        known = isinstance(error, ContestantError)
        why = error if known else f"{type(error).__name__} at {where.name}, line {where.lineno}: {error}"
        return ResultsPart(name, "", unjudged=[f"{name}, all of it: {why}"])
    return part
