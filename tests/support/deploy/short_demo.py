"""`deniable demo` with one flight in sixteen, in less time: as a process, for tests of the whole path.

Its limits of time are longer, since other tests run beside it: reports may come later, and processes may take
longer to start.
"""

from dataclasses import replace

from deniable.deploy.cli import main
from deniable.deploy.demo import run, setup, stream

EVERY = 16
FLIGHTS = 21_049
CANARY_REPORTS = 20_000
STREAM_SECONDS = 12.0
PATIENCE_SECONDS = 240.0
COLUMNS = ("carriers", "destinations", "origins", "air_minutes")
SETTINGS = {
    "grace_seconds: 10": "grace_seconds: 30",
    "minimum_reports: 10000": "minimum_reports: 1000",
    "minimum_reports: 5000": "minimum_reports: 1000",
}

if __name__ == "__main__":
    flights = run.load_flights()
    fewer = replace(flights, **{name: getattr(flights, name)[::EVERY] for name in COLUMNS})
    run.load_flights = lambda: fewer
    run.STREAM_SECONDS = dict.fromkeys((True, False), STREAM_SECONDS)
    run.VERDICT_SECONDS = setup.START_SECONDS = PATIENCE_SECONDS
    stream.CANARY_REPORTS = CANARY_REPORTS
    for before, now in SETTINGS.items():
        setup.COLLECTION_FILE = setup.COLLECTION_FILE.replace(before, now)
    main.main()
