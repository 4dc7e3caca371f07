"""Devices that send uploads to real edges and remember every answer, and what stands in the topic."""

import http.client
import threading
import time
from collections import Counter

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from deniable.protocol.uploads.frame import decode_frame
from tests.support.edge.uploads import group, upload

HEADERS = {"Content-Type": "application/vnd.deniable.reports"}
FILE = """revision: 1
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", partitions: {partitions}}}
edge: {{uploads_per_minute: 0, trusted_proxies: 1}}
collections:
  - {{name: small, mechanism: k-rr, values: [a, b, c], other: false, epsilon: 2.0, window_seconds: 3600,
     grace_seconds: 600, budget: none}}
"""


class Device(threading.Thread):
    """Sends one upload after the other; each until it is taken, to any of the edges, under the same bytes."""

    def __init__(self, ports, collection, stop, headers=()):
        super().__init__(daemon=True)
        self._ports, self._collection, self._stop_sending = ports, collection, stop
        self._headers = HEADERS | dict(headers)
        self.taken: list[bytes] = []
        self.statuses: Counter[int] = Counter()
        self.retry_after: set[str | None] = set()
        self._connections = {}

    def run(self):
        self._send_all()
        self.close()

    def close(self):
        for each in self._connections.values():
            each.close()

    def _send_all(self):
        turn = 0
        while not self._stop_sending.is_set():
            body = upload(group(self._collection))
            while not self._stop_sending.is_set():
                turn += 1
                status = self.send(self._ports[turn % len(self._ports)], body)
                self.statuses[status] += 1
                if status == 204:
                    self.taken.append(body)
                    break
                time.sleep(0.02)

    def send(self, port, body):
        """Return the status; 0 if there was no answer."""
        connection = self._connections.setdefault(
            port, http.client.HTTPConnection("127.0.0.1", port, timeout=15)
        )
        try:
            connection.request("POST", "/v1/reports", body, self._headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return 0
        if answer.status == 503:
            self.retry_after.add(answer.headers["Retry-After"])
        return answer.status


def begin(servers, topic, partitions):
    """Create the topic, with a record in each partition as a relay writes it."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics(
        [NewTopic(topic, partitions, 1, topic_configs={"message.timestamp.type": "LogAppendTime"})]
    )
    admin.close()
    with KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for partition in range(partitions):
            producer.send(topic, b"begun", partition=partition).get(20)


def written(servers, topic, partitions):
    """Return the uploads of the topic, with how often each stands in it, and all records."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False
    )
    sources = [TopicPartition(topic, each) for each in range(partitions)]
    consumer.assign(sources)
    ends = consumer.end_offsets(sources)
    records = []
    while any(consumer.position(each) < ends[each] for each in sources):
        for found in consumer.poll(timeout_ms=500).values():
            records += found
    consumer.close()
    frames = [record for record in records if record.value != b"begun"]
    return Counter(bytes(each) for record in frames for each in decode_frame(record.value)), frames
