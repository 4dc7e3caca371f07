"""The image that this repository builds itself."""

LOCAL_IMAGE = "deniable-kafka:local"  # built by deploy/broker/kafka/image.sh
