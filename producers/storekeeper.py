"""The one thread that stores and sends: it takes what the callers' threads hand over, a round at a time."""

import threading
from functools import partial

from producers.connection import connect
from producers.counters import Tally
from producers.delivery import Delivery
from producers.dispatch import Dispatch
from producers.intake import Intake, Seal, Submission
from producers.producer_config import ProducerConfig
from producers.randomness import Words
from producers.rounds import Clock, Rounds


class Storekeeper:
    """Runs rounds until it is closed; thread-safe. It belongs to the process that made it.

    Parameters
    ----------
    config : ProducerConfig.
    words : source of the pack ids, the shuffling and the ticks.
    clock : Clock.
    tally : counts what becomes of reports.

    Raises
    ------
    StoreError if the store cannot be opened.
    """

    def __init__(self, config: ProducerConfig, words: Words, clock: Clock, tally: Tally) -> None:
        self._pack_seconds = config.pack_seconds
        self._words = words
        self._clock = clock
        self._intake = Intake()
        self._gate = threading.Lock()
        self._is_ending = False
        where = (config.bootstrap_servers, config.topic, config.partitions, config.connect_seconds)
        self._delivery = Delivery(partial(connect, *where), config.topic, self._intake.wake)
        collections = {each.collection.fingerprint: each.collection for each in config.allowances}
        dispatch = Dispatch(self._delivery, config.partitions, collections, tally)
        self._rounds = Rounds(config, words, clock, tally, dispatch)
        self._delivery.start()
        self._thread = threading.Thread(target=self._run, name="deniable-store", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str | None:
        """Why nothing was acknowledged of late, as far as it is known."""
        trouble = self._delivery.trouble
        return None if trouble is None else str(trouble)

    def put(self, item: Submission | Seal, seconds: float) -> bool:
        """As Intake.put."""
        return self._intake.put(item, seconds)

    def pause(self) -> None:
        """Let the present round end, and hold the next one back with the store closed, until `resume`."""
        self._gate.acquire()
        self._rounds.suspend()

    def resume(self) -> None:
        """Go on."""
        self._gate.release()

    def close(self) -> None:
        """Store what was queued, take nothing more, disconnect."""
        self._intake.close()
        self._is_ending = True
        self._intake.wake()
        self._thread.join()

    def _run(self) -> None:
        tick = self._clock.steady() + self._jittered()
        while not self._is_ending:
            tick = self._round(tick)
        self._delivery.close()
        self._round(-float("inf"))
        with self._gate:
            self._rounds.close()

    def _round(self, tick: float) -> float:
        """One round, once there is something to do or it is time to tick; the time of the next tick."""
        items = self._intake.take(tick - self._clock.steady())
        ticking = self._clock.steady() >= tick
        with self._gate:
            self._rounds.run(
                [item for item in items if isinstance(item, Submission)],
                [item for item in items if isinstance(item, Seal)],
                ticking=ticking,
            )
        return self._clock.steady() + self._jittered() if ticking else tick

    def _jittered(self) -> float:
        """Seconds to the next tick, uniform in [0.25, 0.75) of pack_seconds: no fixed beat shows."""
        return self._pack_seconds * (0.25 + 0.5 * float(self._words.words64((1,))[0]) / 2**64)
