"""The tasks of an edge that last until it stops.

Rule: if one of them ends by an error that nobody foresaw, the edge ends. Without it, all uploads would be
refused, or wait for ever, while the edge seems healthy. It keeps nothing, so a supervisor may start it again,
and devices send again what got no answer.
"""

import asyncio
from collections.abc import Coroutine

from deniable.estimators.errors import DefectError


class LastingTasks:
    """Tasks that are cancelled together.

    Attributes
    ----------
    defect : done with an error once a task has ended by it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self.defect: asyncio.Future[DefectError] = self._loop.create_future()

    def start(self, work: Coroutine[None, None, None], what: str) -> None:
        """Run this; `what` names it in messages."""
        task = self._loop.create_task(work, name=what)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def cancel(self) -> None:
        """End all of them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.defect.done():
            self.defect.set_result(DefectError(task.get_name(), error))
