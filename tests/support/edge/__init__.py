"""Help for tests of the edge: `served` is one without Kafka; `uploads` builds what devices send."""
