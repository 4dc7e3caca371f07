"""Names of Faust, aiokafka and kafka-python that are not public, and that we use: all of them, in one place.

An upgrade may move them without a word; `test_private_names` then says which of our files needs the name.
"""

from typing import NamedTuple

FAUST, AIOKAFKA, KAFKA = "faust-streaming", "aiokafka", "kafka-python"
FETCHING = "aggregator/partition/fetching/run_fetching.py"
CONSUMER = "aggregator/partition/consumer.py"
CONNECTION = "producers/transport/connection.py"
FINDINGS = "cluster/permissions/findings.py"
GROUPS = "cluster/connection/groups.py"
QUOTAS = "deploy/cluster/permissions/quotas.py"
REQUESTS = "cluster/connection/requests.py"
HANDSHAKES = "cluster/connection/handshakes.py"
PUBLICATIONS = "cluster/reading/publication_reader.py"
CLOSING = "cluster/connection/closing.py"
RENEWED = "cluster/logins/of_aiokafka.py"
CURRENT_PLAIN = "cluster/logins/of_kafka_python.py"
SESSION = "edge/sending/kafka_session.py"
NO_CREATION = "cluster/existing_topics/of_aiokafka.py"
NO_CREATION_EITHER = "cluster/existing_topics/of_kafka_python.py"


class PrivateName(NamedTuple):
    """A name of a library that it may move without notice.

    Parameters
    ----------
    library : distribution.
    owner : module, or module:class.
    text : a member of the owner, or of its instances; or code that its source must contain.
    file : of ours that uses it; a name has an entry for each such file.
    purpose : what it is used for.
    """

    library: str
    owner: str
    text: str
    file: str
    purpose: str


def _names(library: str, owner: str, file: str, **purposes: str) -> tuple[PrivateName, ...]:
    return tuple(PrivateName(library, owner, text, file, purpose) for text, purpose in purposes.items())


DRIVER, FAUST_CONSUMER = "faust.transport.drivers.aiokafka", "faust.transport.consumer"
FETCHER = "aiokafka.consumer.fetcher"
PRIVATE = (
    *_names(
        FAUST,
        f"{DRIVER}:AIOKafkaConsumerThread",
        CONSUMER,
        _create_worker_consumer="set up the client",
        _ensure_consumer="find the client",
    ),
    *_names(
        FAUST,
        f"{DRIVER}:Consumer",
        CONSUMER,
        _new_consumer_thread="run our thread",
        _to_message="wrap all runs of a fetch in one message",
        _getmany="fetch in an unbroken chain",
        _thread="seek between two fetches",
    ),
    *_names(
        FAUST,
        f"{FAUST_CONSUMER}:Consumer",
        CONSUMER,
        _commit="commit nothing",
        _read_offset="deliver what was rewound",
        perform_seek="hear that fetched records were dropped",
        on_buffer_full="keep fetching",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka:AIOKafkaConsumer",
        CONSUMER,
        _fetch_max_wait_ms="wait briefly for new records",
        _subscription="know the fetcher's position",
    ),
    *_names(AIOKAFKA, "aiokafka.conn", CONSUMER, READER_LIMIT="read an answer in one go"),
    PrivateName(
        AIOKAFKA,
        "aiokafka:AIOKafkaConsumer",
        "value_deserializer=self._value_deserializer",
        FETCHING,
        "tell a consumer that asks for runs from others",
    ),
    PrivateName(
        AIOKAFKA,
        f"{FETCHER}:Fetcher",
        "records = MemoryRecords(part_data[-1])",
        FETCHING,
        "keep the bytes of a fetch",
    ),
    PrivateName(
        AIOKAFKA,
        f"{FETCHER}:Fetcher",
        "PartitionRecords( tp, records, aborted_transactions, fetch_offset, self._key_deserializer, "
        "self._value_deserializer, self._check_crcs, self._isolation_level, )",
        FETCHING,
        "read them into runs",
    ),
    PrivateName(
        AIOKAFKA,
        f"{FETCHER}:FetchResult",
        "for msg in self._partition_records:",
        FETCHING,
        "return runs where it returns records",
    ),
    PrivateName(
        AIOKAFKA,
        f"{FETCHER}:FetchResult",
        "state.consumed_to(self._partition_records.next_fetch_offset)",
        FETCHING,
        "keep the position behind the last run",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka.conn:AIOKafkaConnection",
        HANDSHAKES,
        _writer="close a connection at once",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka.conn:AIOKafkaConnection",
        RENEWED,
        _do_sasl_handshake="log in again before a session ends",
        _sasl_plain_password="log in with the present password",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka:AIOKafkaProducer",
        CLOSING,
        _message_accumulator="give up what waits to be sent",
        _sender="end its task",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka.producer.message_accumulator:MessageAccumulator",
        CLOSING,
        _batches="give up what waits to be sent",
        _pending_batches="give up what waits to be sent",
    ),
    PrivateName(
        AIOKAFKA,
        "aiokafka.producer.message_accumulator:MessageBatch",
        "_drain_waiter",
        CLOSING,
        "retrieve its error",
    ),
    *_names(AIOKAFKA, "aiokafka.client:AIOKafkaClient", NO_CREATION, _metadata_update="create no topic"),
    PrivateName(
        AIOKAFKA,
        "aiokafka.client:AIOKafkaClient",
        "metadata_request = MetadataRequest(list(topics) if topics else None)",
        NO_CREATION,
        "create no topic",
    ),
    PrivateName(
        KAFKA,
        "kafka.cluster:ClusterMetadata",
        "allow_auto_topic_creation=self.config['allow_auto_create_topics']",
        NO_CREATION_EITHER,
        "create no topic",
    ),
    *_names(
        KAFKA,
        "kafka:KafkaProducer",
        CONNECTION,
        _wait_on_metadata="wait for a topic's partitions",
        _unregister_cleanup="close when we choose to",
    ),
    *_names(
        KAFKA,
        "kafka.cluster:ClusterMetadata",
        CONNECTION,
        _last_successful_refresh_ms="see whether a broker answered",
    ),
    *_names(KAFKA, "kafka.net.compat:KafkaNetClient", CONNECTION, _manager="watch its connections"),
    *_names(
        KAFKA,
        "kafka:KafkaAdminClient",
        REQUESTS,
        _manager="send requests of Kafka's protocol",
        _find_coordinator_id="find a coordinator",
    ),
)
MANAGER = "kafka.net.manager:KafkaConnectionManager"
POSITIONS = "aiokafka.consumer.subscription_state"
#: Without an underscore, but in modules that the libraries do not document.
INTERNAL = (
    *_names(
        FAUST,
        DRIVER,
        CONSUMER,
        AIOKafkaConsumerThread="fetch runs",
        Consumer="count runs",
        Transport="create the client",
    ),
    *_names(FAUST, DRIVER, "aggregator/partition/faust_app.py", Transport="use our consumer"),
    *_names(AIOKAFKA, f"{POSITIONS}:SubscriptionState", CONSUMER, subscription="know the fetcher's position"),
    *_names(AIOKAFKA, f"{POSITIONS}:Subscription", CONSUMER, assignment="know the fetcher's position"),
    *_names(AIOKAFKA, f"{POSITIONS}:Assignment", CONSUMER, state_value="know the fetcher's position"),
    *_names(
        AIOKAFKA,
        f"{POSITIONS}:TopicPartitionState",
        CONSUMER,
        has_valid_position="know the fetcher's position",
        position="know the fetcher's position",
    ),
    *_names(
        AIOKAFKA,
        FETCHER,
        FETCHING,
        MemoryRecords="keep the bytes of a fetch",
        PartitionRecords="read records for all other consumers",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka.record.memory_records",
        FETCHING,
        MemoryRecords="read batches that are compressed or damaged",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka.record.memory_records:MemoryRecords",
        FETCHING,
        has_next="stand in for it",
        next_batch="read batches that are compressed or damaged",
        size_in_bytes="stand in for it",
    ),
    *_names(AIOKAFKA, "aiokafka.partitioner", "aggregator/topics/partitioner.py", murmur2="place a key"),
    *_names(
        AIOKAFKA,
        "aiokafka.coordinator.assignors.sticky.sticky_assignor",
        "relay/service/group.py",
        StickyPartitionAssignor="keep partitions where they are",
    ),
    *_names(AIOKAFKA, "aiokafka.conn", RENEWED, AIOKafkaConnection="log in again before a session ends"),
    *_names(
        AIOKAFKA,
        "aiokafka.protocol.admin",
        RENEWED,
        SaslAuthenticateRequest="see how long a session lasts",
        SaslHandShakeRequest="let no other request come between those of a login",
    ),
    PrivateName(
        AIOKAFKA, "aiokafka.conn:create_conn", "conn = AIOKafkaConnection(", RENEWED, "open our connections"
    ),
    *_names(KAFKA, "kafka.net.sasl", CURRENT_PLAIN, register_sasl_mechanism="read passwords again"),
    *_names(KAFKA, "kafka.net.sasl.plain", CURRENT_PLAIN, SaslMechanismPlain="read passwords again"),
    *_names(
        AIOKAFKA,
        "aiokafka.conn:AIOKafkaConnection",
        HANDSHAKES,
        connect="log in to one broker",
        send="ask it for all brokers",
        close="close a connection at once",
    ),
    *_names(AIOKAFKA, "aiokafka.protocol.metadata", HANDSHAKES, MetadataRequest="ask for all brokers"),
    *_names(AIOKAFKA, "aiokafka.client", SESSION, AIOKafkaClient="send frames without a producer"),
    *_names(
        AIOKAFKA,
        "aiokafka.client:AIOKafkaClient",
        SESSION,
        bootstrap="connect",
        cluster="find leaders and brokers",
        set_topics="ask for a topic's leaders",
        force_metadata_update="ask for leaders again",
        ready="connect to a leader",
        send="send frames",
        close="disconnect",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka.cluster:ClusterMetadata",
        SESSION,
        brokers="see which brokers are advertised",
        unauthorized_topics="see a missing permission",
        partitions_for_topic="count the topic's partitions",
        leader_for_partition="find a leader",
    ),
    *_names(AIOKAFKA, "aiokafka.protocol.offset", SESSION, OffsetRequest="ask for end offsets"),
    PrivateName(
        AIOKAFKA,
        "aiokafka.protocol.offset:OffsetRequest",
        "self, replica_id: int, isolation_level: int, topics: list[tuple[str, list[tuple[int, int]]]],",
        SESSION,
        "give its parameters in this order",
    ),
    *_names(AIOKAFKA, "aiokafka.protocol.produce", SESSION, ProduceRequest="append frames"),
    PrivateName(
        AIOKAFKA,
        "aiokafka.protocol.produce:ProduceRequest",
        "self, transactional_id: str | None, required_acks: int, timeout: int, "
        "topics: list[tuple[str, list[tuple[int, bytes]]]],",
        SESSION,
        "give its parameters in this order",
    ),
    *_names(AIOKAFKA, "aiokafka.record.default_records", SESSION, DefaultRecordBatchBuilder="write a batch"),
    *_names(
        AIOKAFKA,
        "aiokafka.record.default_records:DefaultRecordBatchBuilder",
        SESSION,
        append="write a batch",
        build="write a batch",
    ),
    PrivateName(AIOKAFKA, "aiokafka", "client", NO_CREATION, "create no topic"),
    *_names(AIOKAFKA, "aiokafka.client", NO_CREATION, AIOKafkaClient="create no topic"),
    *_names(AIOKAFKA, "aiokafka.protocol.metadata", NO_CREATION, MetadataRequest="create no topic"),
    *_names(KAFKA, "kafka.net.compat", NO_CREATION_EITHER, KafkaNetClient="create no topic"),
    *_names(KAFKA, MANAGER, NO_CREATION_EITHER, cluster="create no topic"),
    *_names(KAFKA, "kafka.net.compat", CONNECTION, KafkaNetClient="watch its connections"),
    *_names(KAFKA, MANAGER, CONNECTION, get_connection="see why brokers close connections"),
    *_names(
        KAFKA,
        "kafka.net.connection:KafkaConnection",
        CONNECTION,
        close_future="see why brokers close connections",
    ),
    *_names(KAFKA, "kafka.cluster:ClusterMetadata", CONNECTION, brokers="see which brokers are advertised"),
    *_names(
        KAFKA,
        MANAGER,
        REQUESTS,
        call_soon="run on the client's thread",
        run="wait for an answer",
        send="send requests",
    ),
    *_names(KAFKA, "kafka.protocol.metadata", REQUESTS, CoordinatorType="find a transaction's coordinator"),
    *_names(KAFKA, "kafka.protocol.consumer", PUBLICATIONS, FetchRequest="read the topic"),
    *_names(KAFKA, "kafka.protocol.consumer:FetchRequest", PUBLICATIONS, FetchTopic="name the topic"),
    *_names(KAFKA, "kafka.protocol.metadata", PUBLICATIONS, MetadataRequest="find the leader"),
    *_names(
        KAFKA,
        "kafka.protocol.metadata:MetadataRequest",
        PUBLICATIONS,
        MetadataRequestTopic="name the topic",
    ),
    *_names(KAFKA, "kafka.record", PUBLICATIONS, MemoryRecords="read what a fetch holds"),
    *_names(KAFKA, "kafka.record:MemoryRecords", PUBLICATIONS, next_batch="read what a fetch holds"),
    *_names(KAFKA, "kafka.protocol.admin", GROUPS, DescribeGroupsRequest="read permissions on a group"),
    *_names(KAFKA, "kafka.protocol.producer", FINDINGS, EndTxnRequest="try to write a transaction"),
    *_names(
        KAFKA,
        "kafka.protocol.admin",
        QUOTAS,
        AlterClientQuotasRequest="set quotas",
        DescribeClientQuotasRequest="read quotas",
    ),
    *_names(KAFKA, "kafka.protocol.admin:AlterClientQuotasRequest", QUOTAS, EntryData="set quotas"),
    *_names(KAFKA, "kafka.protocol.admin:DescribeClientQuotasRequest", QUOTAS, ComponentData="read quotas"),
)
NAMES = PRIVATE + INTERNAL
