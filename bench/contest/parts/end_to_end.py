"""From a log on a real broker to stored counts, and from an event to the estimate that shows it."""

from pathlib import Path
from tempfile import TemporaryDirectory

from bench.contest.figure import Part, Table
from bench.contest.parts import sustained
from bench.contest.rounds import Scale
from deploy.broker import Broker

ABOUT = "TODO"


def measure(scale: Scale) -> Part:
    """Speeds at each size of a pack."""
    speeds, figures = [], []
    with TemporaryDirectory() as name, Broker() as broker:
        folder = Path(name)
        for size in sustained.QUICK if scale.quick else sustained.FULL:
            found = sustained.sustained(size, folder, broker)
            speeds += found
            figures += sustained.figures(size, found)
    return Part("End to end", ABOUT, figures, [Table("All readers", [each.row() for each in speeds])])
