"""Schemas of our custom resources: the fields that we use, from the operators' references.

No installed tool has schemas of these kinds, so an unlisted field counts as a mistake.
"""

from typing import Any

NAME = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"}
COUNT = {"type": "integer", "minimum": 1}


def exactly(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object with all these fields and no others."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def some_of(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object with any of these fields and no others."""
    return exactly(**fields) | {"required": []}


def one_of(*texts: str) -> dict[str, Any]:
    return {"enum": list(texts)}


def list_of(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


TEXTS = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
OPERATIONS = ("Read", "Write", "Describe", "DescribeConfigs")
ACL = exactly(
    resource=exactly(
        type=one_of("topic", "group", "transactionalId"),
        name={"type": "string", "minLength": 1},
        patternType=one_of("literal", "prefix"),
    ),
    operations=list_of(one_of(*OPERATIONS)),
)
STABILIZATION = some_of(stabilizationWindowSeconds={"type": "integer", "minimum": 0, "maximum": 3600})
PARAMETER = exactly(parameter=one_of("username", "password", "ca"), name=NAME, key={"type": "string"})
KAFKA_TRIGGER = exactly(
    bootstrapServers={"type": "string", "pattern": r"^[a-z0-9.-]+:\d+$"},
    consumerGroup={"type": "string"},
    topic={"type": "string"},
    lagThreshold={"type": "string", "pattern": r"^[1-9]\d*$"},
    offsetResetPolicy=one_of("earliest", "latest"),
    allowIdleConsumers=one_of("true", "false"),
    sasl=one_of("none", "plaintext", "scram_sha256", "scram_sha512"),
    tls=one_of("enable", "disable"),
)

#: Schema of `spec` by apiVersion and kind.
SPECS = {
    # strimzi.io, "Custom resource API reference"
    ("kafka.strimzi.io/v1", "KafkaTopic"): exactly(
        topicName={"type": "string"}, partitions=COUNT, replicas=COUNT, config=TEXTS
    ),
    ("kafka.strimzi.io/v1", "KafkaUser"): some_of(
        authentication=exactly(type=one_of("scram-sha-512", "tls")),
        authorization=exactly(type=one_of("simple"), acls=list_of(ACL)),
        quotas=some_of(producerByteRate=COUNT),
    ),
    # keda.sh, "ScaledObject specification", "Apache Kafka", "Authentication"
    ("keda.sh/v1alpha1", "ScaledObject"): exactly(
        scaleTargetRef=exactly(apiVersion=one_of("apps/v1"), kind=one_of("Deployment"), name=NAME),
        minReplicaCount=COUNT,
        maxReplicaCount=COUNT,
        pollingInterval=COUNT,
        cooldownPeriod=COUNT,
        advanced=exactly(
            horizontalPodAutoscalerConfig=exactly(
                behavior=some_of(scaleUp=STABILIZATION, scaleDown=STABILIZATION)
            )
        ),
        triggers=list_of(
            exactly(type=one_of("kafka"), metadata=KAFKA_TRIGGER, authenticationRef=exactly(name=NAME))
        ),
    ),
    ("keda.sh/v1alpha1", "TriggerAuthentication"): exactly(
        configMapTargetRef=list_of(PARAMETER), secretTargetRef=list_of(PARAMETER)
    ),
    # prometheus-operator.dev, "API reference"
    ("monitoring.coreos.com/v1", "ServiceMonitor"): exactly(
        jobLabel={"type": "string"},
        selector=exactly(matchLabels=TEXTS),
        endpoints=list_of(
            exactly(
                port=NAME,
                path={"type": "string", "pattern": "^/"},
                interval={"type": "string", "pattern": r"^\d+s$"},
                scrapeTimeout={"type": "string", "pattern": r"^\d+s$"},
            )
        ),
    ),
}
