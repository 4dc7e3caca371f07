"""Whether anything listens at the brokers' addresses: kafka-python's errors only say that time went by.

Asked by a plain connection, in the thread that sends, while there is nothing that it could send.
"""

import socket
from collections.abc import Mapping

from deniable.cluster.cluster import Cluster

ASK_SECONDS = 2.0  # in all


def explained(cluster: Cluster, what: str) -> str:
    """Return what Kafka did or did not do; if no broker's address takes a connection, that and why instead.

    Parameters
    ----------
    cluster : which Kafka.
    what : the predicate of a sentence, `acknowledged nothing`.
    """
    servers, causes = cluster.bootstrap_servers, unreachable(cluster)
    each = "; ".join(f"{address}: {cause}" for address, cause in causes.items())
    if len(causes) < len(cluster.addresses()):
        return f"Kafka at {servers} {what}" + (f" ({each})" if each else "")
    same = set(causes.values())
    return f"no Kafka broker answers at {servers}: {same.pop() if len(same) == 1 else each}"


def unreachable(cluster: Cluster) -> Mapping[str, str]:
    """Return why no connection to an address is taken, for each that takes none."""
    addresses, causes = cluster.addresses(), {}
    for name, address in zip(cluster.bootstrap_servers.split(","), addresses, strict=True):
        try:
            socket.create_connection(address, ASK_SECONDS / len(addresses)).close()
        except TimeoutError:
            causes[name] = "no answer in time"
        except OSError as error:
            causes[name] = error.strerror or "no answer"
    return causes
