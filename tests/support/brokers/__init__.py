"""Which Kafka the tests run on: embedded, in a container, or one given by address."""
