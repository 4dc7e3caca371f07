"""Keep clients from creating topics, which brokers do for whoever asks about one, unless told not to.

Kafka creates it with settings of its own (auto.create.topics.enable): `reports` with one partition, say. Only
`topics create` creates topics. One file for each client library, since producers are installed without
aiokafka.

May import no sibling. Begin with `of_kafka_python`.
"""
