"""Windows whose counts were deleted before a final estimate."""

from collections import Counter
from collections.abc import Callable

import structlog

from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics

log = structlog.get_logger()


class LostWindows:
    """Counts each once while a partition is owned, and logs many in one line.

    Parameters
    ----------
    metrics : of the worker.
    """

    def __init__(self, metrics: WorkerMetrics) -> None:
        self.metrics = metrics
        self.known: set[Window] = set()
        self._unlogged: Counter[str] = Counter()
        self._leaving: list[tuple[Window, str]] = []

    def add(self, window: Window, collection: str) -> None:
        """Count a window of this collection, once."""
        if window not in self.known:
            self.known.add(window)
            self._unlogged[collection] += 1
            self.metrics.windows_lost.labels(collection).inc()

    def add_when_committed(self, window: Window, collection: str) -> None:
        """Count a window when the current transaction is committed: if it fails, the window comes again."""
        self._leaving.append((window, collection))

    def committed(self) -> None:
        """Count the windows of the committed transaction."""
        for window, collection in self._leaving:
            self.add(window, collection)
        self._leaving.clear()

    def log_new(self) -> None:
        """Warn of windows lost since the last call."""
        for name, windows in self._unlogged.items():
            log.warning("windows died before their final estimate", collection=name, windows=windows)
        self._unlogged.clear()

    def keep(self, wanted: Callable[[Window], bool]) -> None:
        """Forget windows that cannot be added again."""
        leaving = {window for window, _ in self._leaving}
        self.known = {window for window in self.known if window in leaving or wanted(window)}
