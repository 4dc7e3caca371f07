"""A part that fails is told in the results; the others are measured all the same."""

from types import ModuleType

from bench.contest.contestant import ContestantError
from bench.contest.figure import Part
from bench.contest.rounds import Scale


def attempt(module: ModuleType, scale: Scale) -> Part:
    """What the module's `measure` finds, or a part that says why it found nothing."""
    try:
        part: Part = module.measure(scale)
    except ContestantError as error:
        name = module.__name__.rpartition(".")[2]
        return Part(name, "", notes=[f"**{name} was not measured**: {error}"])
    return part
