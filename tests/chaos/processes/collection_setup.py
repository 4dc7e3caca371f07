"""The setup of a run: a file of three collections, and topics that are compacted continuously.

Windows of `fruit` and `place` outlast a run. Those of `flash` open, close and get final estimates during it,
so late writes would change rows that are never written again. They are full before they close: about 800
packs are sent for each, at 2,000 packs a second in total.
"""

from contextlib import suppress
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import UnknownTopicOrPartitionError

from deniable.cluster.cluster import Cluster
from deniable.cluster.topics.plan import plan
from deniable.config.file import Configuration, load
from deniable.deploy.cluster.topics.setup import create
from deniable.protocol.secrets.private_file import create_private
from deniable.protocol.topic_names import Topics

HEAD = """\
revision: {revision}
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", allow_plaintext: true}}
collections:
  - {{name: fruit, mechanism: k-rr, size: 300, other: false, epsilon: 2.0, window_seconds: 3600,
     grace_seconds: 3600, budget: none}}
  - {{name: place, mechanism: rappor, bits: 64, hashes: 2, cohorts: 3, f: 0.25, p: 0.35, q: 0.65,
     candidates: [A, B, C], window_seconds: 3600, grace_seconds: 3600, budget: none}}
  - {{name: flash, mechanism: k-rr, size: 40, other: false, epsilon: 1.0, window_seconds: {window_seconds},
     grace_seconds: {grace_seconds}, retention_seconds: 60, window_packs: 700, budget: none}}
"""
PATH_HEAD = """\
revision: {revision}
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", allow_plaintext: true}}
edge: {{uploads_per_minute: 0}}
relay: {{secret_file: secret, delivery_seconds: {delivery}, batch_reports: 300, shuffle_reports: 20,
  pack_reports: 25, idle_seconds: 0.5}}
collections:
  - {{name: each, mechanism: k-rr, size: 30000, other: false, epsilon: 2.0, window_seconds: 5,
     grace_seconds: {grace_seconds}, minimum_reports: 1000000, budget: none}}
  - {{name: bits, mechanism: rappor, bits: 16, hashes: 2, cohorts: 2, f: 0.25, p: 0.35, q: 0.65,
     candidates: [A], memoize: false, window_seconds: 5, grace_seconds: {grace_seconds}, budget: none}}
"""
FLASH_WINDOW_SECONDS = 5
FLASH_GRACE_SECONDS = 4
PATH_WINDOW_SECONDS = 5
ONE_MORE = """\
  - {{name: extra, mechanism: k-rr, size: 70000, other: false, epsilon: 3.0, window_seconds: 3600,
     grace_seconds: 3600, budget: none}}
"""
#: A segment is closed after two seconds and then cleaned as soon as possible. The retention of tombstones and
#: markers (delete.retention.ms, a day) is unchanged: readers must be faster than that, and our clients cannot
#: read a marker that was emptied because it is its producer's last.
COMPACTED_ALL_THE_TIME = {
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "2000",
}


def configure(
    folder: Path,
    servers: str,
    prefix: str,
    grace_seconds: int = FLASH_GRACE_SECONDS,
    window_seconds: int = FLASH_WINDOW_SECONDS,
    replication: int = 1,
) -> Configuration:
    """Write the collection file and create its topics; windows and grace are those of `flash`."""
    file = folder / "deniable.yaml"
    configuration = write(file, servers, prefix, 1, HEAD, grace_seconds, window_seconds=window_seconds)
    create(Cluster(servers), configuration.topics, replication)
    return configuration


def configure_path(
    folder: Path, servers: str, prefix: str, close_seconds: int, delivery_seconds: int
) -> Configuration:
    """Write the collection file and the relays' secret for a run of devices, and create its topics.

    Relays take uploads of a window for `close_seconds` after its end, and have `delivery_seconds` more.
    """
    create_private(folder / "secret", bytes(range(32)))
    file, grace_seconds = folder / "deniable.yaml", close_seconds + delivery_seconds
    configuration = write(file, servers, prefix, 1, PATH_HEAD, grace_seconds, delivery=delivery_seconds)
    create(configuration.cluster, configuration.topics, 1, configuration.collections)
    return configuration


def with_one_more(configuration: Configuration) -> Configuration:
    """Write the next revision of the file under another name, with another collection with paged rows."""
    kafka = configuration.kafka
    file = configuration.path.with_name("deniable-2.yaml")
    return write(file, kafka.bootstrap_servers, kafka.topic_prefix, 2, HEAD + ONE_MORE)


def without_it(configuration: Configuration) -> Configuration:
    """Write the following revision, without that collection."""
    kafka = configuration.kafka
    file = configuration.path.with_name("deniable-3.yaml")
    return write(file, kafka.bootstrap_servers, kafka.topic_prefix, 3, HEAD)


def write(
    file: Path,
    servers: str,
    prefix: str,
    revision: int,
    text: str,
    grace_seconds: int = FLASH_GRACE_SECONDS,
    **names: int,
) -> Configuration:
    """Write a collection file with these names in it, and load it."""
    flash = {"window_seconds": FLASH_WINDOW_SECONDS, "grace_seconds": grace_seconds}
    names = {**flash, **names, "revision": revision}
    content = text.format(servers=servers, prefix=prefix, **names)
    file.write_text(content, encoding="utf-8")
    return load(file, environment={})


def compact_all_the_time(servers: str, topics: Topics) -> None:
    """Compact `state` and `counts` every few seconds."""
    wanted = [
        ConfigResource(ConfigResourceType.TOPIC, topic, configs=COMPACTED_ALL_THE_TIME)
        for topic in (topics.state, topics.counts)
    ]
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.alter_configs(wanted)


def delete_topics(servers: str, topics: Topics) -> None:
    """Delete all topics of a run."""
    names = [each.name for each in plan(topics)]
    # An answer that comes too late is asked for again, of topics that are gone.
    with suppress(UnknownTopicOrPartitionError), KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.delete_topics(names)
