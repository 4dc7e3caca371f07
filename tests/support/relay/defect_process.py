"""The real `deniable relay` with a defect: its gauges, or its fold, meet an error that nobody foresaw.

python -m tests.support.relay.defect_process PART ARGUMENTS...
"""

import sys

from deniable.relay.service.metrics import RelayMetrics
from deniable.relay.service.partition import PartitionRelay

PAYLOAD = "Mallory was here"
PARTS = {"gauges": (RelayMetrics, "show"), "fold": (PartitionRelay, "take")}


def fail(*_: object) -> None:
    raise KeyError(PAYLOAD)


def main() -> None:
    from deniable.deploy.cli.main import main as deniable

    owner, name = PARTS[sys.argv[1]]
    setattr(owner, name, fail)
    sys.argv = ["deniable", "relay", *sys.argv[2:]]
    deniable()


if __name__ == "__main__":
    main()
