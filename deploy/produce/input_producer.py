"""A producer that also stores how far an input was read."""

from deniable.deploy.produce.input.values import Value
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline.queueing.submission import SeenReports
from deniable.producers.producer import Producer
from deniable.producers.responders.validation import Clients, Times
from deniable.producers.storage.input_progress import InputProgress


class InputProducer(Producer):
    """A producer that stores reports together with the place in the input that they came from."""

    def report_lines(
        self,
        collection: str,
        values: list[Value],
        clients: Clients,
        at: Times = None,
        *,
        progress: tuple[str, InputProgress] | None,
        seen: SeenReports | None = None,
    ) -> Receipt:
        """Like `report`, but all these reports are stored or dropped together.

        Parameters
        ----------
        collection, values, clients, at : as for `report`.
        progress : path of an input and how far it was read: stored if and only if these reports are not
            dropped. None stores no place.
        seen : is called with the reports once they are stored, without those refused: see `Submission`.
        """
        return self._report(collection, values, clients, at, progress, seen)
