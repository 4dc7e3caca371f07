"""A part that fails is told in the results; the others are measured all the same."""

from types import ModuleType

from bench.contest.contestant import ContestantError
from bench.contest.figure import Part
from bench.contest.rounds import Scale


def attempt(module: ModuleType, scale: Scale) -> Part:
    """What the module's `measure` finds, or a part whose goals are not judged, and why."""
    try:
        part: Part = module.measure(scale)
    except ContestantError as error:
        name = module.__name__.rpartition(".")[2]
        return Part(name, "", unjudged=[f"{name}, all of it: {error}"])
    return part
