"""The overlays, rendered: valid, and agreeing with each other, the collection file and `topics create`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from jsonschema import ValidationError, validate
from kafka.admin import ResourceType

from deniable.cluster.connection.groups import WORKERS
from deniable.cluster.permissions.roles import permissions_of, roles_of, words
from deniable.cluster.topics.plan import plan, settings_made
from deniable.deploy.cluster.permissions.quotas import USUAL
from deniable.deploy.services.aggregate.command import STOP_SECONDS
from tests.support.deploy.custom_resources import SPECS
from tests.support.deploy.overlays import FOLDER, WORKLOADS, Overlay

KINDS = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.TRANSACTIONAL_ID: "transactionalId",
}
AGGREGATOR = ("aggregator", "deployment/deniable-aggregator")
SECRETS = {"kafka-cluster-ca-cert": "ca.crt"}  # made by Strimzi, beside one of each user


@pytest.fixture(scope="module", params=["small", "large", "devices"])
def overlay(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Overlay:
    return Overlay(request.param, tmp_path_factory.mktemp(request.param))


def check(document: Mapping[str, Any]) -> None:
    """ValidationError if Kubernetes, or for a custom resource our list of fields, would refuse it."""
    key = document["apiVersion"], document["kind"]
    if key in SPECS:
        validate(document["spec"], SPECS[key])
    else:
        kubernetes_validate.validate(document, "1.37.0", strict=True)


@pytest.mark.all
def test_every_document_is_valid(overlay: Overlay) -> None:
    for document in overlay.all:
        check(document)
    kinds = {document["kind"] for document in overlay.all}
    assert {"PodDisruptionBudget", "NetworkPolicy", "Service"} <= kinds
    assert {kind for _, kind in SPECS} <= kinds


@pytest.mark.slow
def test_slips_are_found(overlay: Overlay) -> None:
    """The validators know both sorts of documents: a wrong field is refused in each."""
    for kind in ("Deployment", "PodDisruptionBudget", "NetworkPolicy", *(kind for _, kind in SPECS)):
        document = overlay.of(kind)[0]
        slipped = {**document, "spec": {**document["spec"], "slip": 1}}
        with pytest.raises((ValidationError, kubernetes_validate.ValidationError), match="slip"):
            check(slipped)


@pytest.mark.slow
def test_a_step_holds_nothing_that_belongs_to_another(overlay: Overlay) -> None:
    """So an update takes workers before producers, and meets no Job, whose template cannot be changed."""
    held = {
        "topics": {"Job", "KafkaTopic", "KafkaUser", "NetworkPolicy"},
        "aggregator": {"Deployment", "ScaledObject"},
        "relay": {"Deployment"},
        "edge": {"Deployment", "NetworkPolicy"},
        "producer": {"StatefulSet"},
        "replicas": {"Deployment", "NetworkPolicy"},
    }
    for step, documents in overlay.steps.items():
        kinds = {each["kind"] for each in documents}
        assert kinds & set().union(*held.values()) == held[step]
        assert overlay.config_map in {each["metadata"]["name"] for each in documents}


@pytest.mark.slow
def test_the_commands_of_the_docs_follow_the_order(overlay: Overlay) -> None:
    """Each step is waited for before the next one begins, by a workload that is there."""
    text = (FOLDER.parents[1] / "docs" / "containers.md").read_text()
    blocks = [each for each in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE) if "apply -k" in each]
    block = blocks["edge" in overlay.steps]
    steps = r"(?:small|devices)/(\w+)$| (\w+/deniable-\w+)"
    found = [step or name for step, name in re.findall(steps, block, re.MULTILINE)]
    began = ["job/deniable-topics", "topics", "job/deniable-topics"]
    assert (
        found
        == {
            "small": [*began, *AGGREGATOR, "producer", "statefulset/deniable-producer"],
            "devices": [
                *began,
                *AGGREGATOR,
                "relay",
                "deployment/deniable-relay",
                "edge",
                "deployment/deniable-edge",
            ],
        }["devices" if "edge" in overlay.steps else "small"]
    )
    for kind, name in (each.split("/") for each in found if "/" in each):
        assert name in {each["metadata"]["name"] for each in overlay.all if each["kind"].lower() == kind}


def test_topics_are_those_that_topics_create_makes(overlay: Overlay) -> None:
    configuration = overlay.configuration
    made = {each["spec"]["topicName"]: each["spec"] for each in overlay.of("KafkaTopic")}
    assert made == {
        topic.name: {
            "topicName": topic.name,
            "partitions": topic.partitions,
            "replicas": configuration.kafka.replication_factor,
            "config": settings_made(topic, configuration.kafka.replication_factor),
        }
        for topic in plan(configuration.topics)
    }


def test_users_have_permissions_and_quotas_of_topics_create(overlay: Overlay) -> None:
    topics = overlay.configuration.topics
    allowed = {}
    for user in overlay.of("KafkaUser"):
        rows = {}
        for acl in user["spec"]["authorization"]["acls"]:
            where = acl["resource"]
            rows[where["type"], where["name"], where["patternType"]] = set(acl["operations"])
        allowed[user["metadata"]["name"].removeprefix("deniable-")] = rows
    for role in roles_of(topics):
        needed: dict[tuple[str, str, str], set[str]] = {}
        for each in permissions_of(role, topics):
            where = (KINDS[each.kind], each.name, "prefix" if each.is_prefix else "literal")
            needed.setdefault(where, set()).add(words(each.operation))
        assert allowed[role] == needed
        assert overlay.one("KafkaUser", f"deniable-{role}")
    quotas = {each["metadata"]["name"]: each["spec"].get("quotas") for each in overlay.of("KafkaUser")}
    limited = {f"deniable-{role}": {"producerByteRate": rate} for role, rate in USUAL.items()}
    assert quotas == {name: limited.get(name) for name in quotas}
    assert set(allowed) == {*roles_of(topics), "topics", "scaling"}


def test_workers_scale_on_lag_up_to_partitions(overlay: Overlay) -> None:
    configuration = overlay.configuration
    scaled = overlay.one("ScaledObject", "deniable-aggregator")["spec"]
    assert scaled["minReplicaCount"] <= scaled["maxReplicaCount"] == configuration.kafka.partitions
    assert "replicas" not in overlay.one("Deployment", scaled["scaleTargetRef"]["name"])["spec"]
    (trigger,) = scaled["triggers"]
    metadata = trigger["metadata"]
    assert metadata["bootstrapServers"] == configuration.kafka.bootstrap_servers
    assert metadata["consumerGroup"] == configuration.topics.group
    assert metadata["topic"] == configuration.topics.reports
    authentication = overlay.one("TriggerAuthentication", trigger["authenticationRef"]["name"])["spec"]
    (username,) = authentication["configMapTargetRef"]
    user = overlay.one("ConfigMap", username["name"])["data"][username["key"]]
    secrets = {each["name"]: each["key"] for each in authentication["secretTargetRef"]}
    assert secrets == {**SECRETS, overlay.one("KafkaUser", user)["metadata"]["name"]: "password"}


def test_every_pod_runs_without_rights(overlay: Overlay) -> None:
    for name, pod, container in overlay.pods():
        assert pod["automountServiceAccountToken"] is False, name
        rights = pod["securityContext"]
        assert (rights["runAsNonRoot"], rights["runAsUser"]) == (True, 10001), name
        # With `Always`, each mount makes all files group-writable: a producer refuses its secret then.
        assert (rights["fsGroup"], rights["fsGroupChangePolicy"]) == (10001, "OnRootMismatch"), name
        assert rights["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for each in (container, *pod.get("initContainers", ())):
            assert each["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert "memory" in each["resources"]["limits"], name


def test_every_pod_has_its_own_user_by_reference_only(overlay: Overlay) -> None:
    """No value of a secret is in any document, and what is mounted is where the collection file looks."""
    assert overlay.of("Secret") == []
    security = overlay.configuration.kafka.security
    assert security is not None
    for name, pod, container in overlay.pods():
        assert container["env"][0] == {"name": "DENIABLE_KAFKA__SECURITY__USERNAME", "value": name}
        assert "PGPASSWORD" not in {each["name"] for each in container["env"] if "value" in each}
        assert overlay.one("KafkaUser", name)
        volumes = {each["name"]: each for each in pod["volumes"]}
        mounted = {
            each["mountPath"]: volumes[each["name"]]
            for each in container["volumeMounts"]
            if each["name"] in volumes
        }
        assert mounted["/etc/deniable"]["configMap"]["name"] == overlay.config_map
        password, authority = Path(str(security.password_file)), Path(str(security.ca_file))
        secret = mounted[str(password.parent)]["secret"]
        assert (secret["secretName"], secret["items"][0]["path"]) == (name, password.name)
        secret = mounted[str(authority.parent)]["secret"]
        assert (secret["secretName"], secret["items"][0]["path"]) == ("kafka-cluster-ca-cert", authority.name)


def test_worker_pod_has_time_to_stop_and_probes(overlay: Overlay) -> None:
    for name, pod, container in overlay.pods():
        if name in ("deniable-topics", "deniable-edge"):
            continue
        assert pod["terminationGracePeriodSeconds"] > WORKERS.session_seconds + STOP_SECONDS
        (port,) = container["ports"]
        listens = container["args"][container["args"].index("--metrics-listen") + 1]
        assert listens == f"0.0.0.0:{port['containerPort']}"
        for probe, path in (("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")):
            assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": port["name"]}


def test_only_prometheus_gets_in_and_it_finds_every_pod(overlay: Overlay) -> None:
    policy = overlay.one("NetworkPolicy", "deniable")
    (rule,) = policy["spec"]["ingress"]
    service = overlay.one("Service", "deniable-metrics")
    (monitor,) = overlay.of("ServiceMonitor")
    (port,) = service["spec"]["ports"]
    assert rule["ports"] == [{"protocol": "TCP", "port": port["port"]}]
    assert monitor["spec"]["endpoints"][0]["port"] == port["name"]
    labels = monitor["spec"]["selector"]["matchLabels"]
    assert labels.items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["jobLabel"] in service["metadata"]["labels"]
    for selector in (policy["spec"]["podSelector"]["matchLabels"], service["spec"]["selector"]):
        for kind in WORKLOADS:
            for each in overlay.of(kind):
                assert selector.items() <= each["spec"]["template"]["metadata"]["labels"].items()


def test_pods_reach_only_dns_and_kafka(overlay: Overlay) -> None:
    policy = overlay.one("NetworkPolicy", "deniable")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    names, kafka = policy["spec"]["egress"]
    (to,) = names["to"]
    assert to == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    assert {(each["protocol"], each["port"]) for each in names["ports"]} == {("UDP", 53), ("TCP", 53)}
    host, port = overlay.configuration.kafka.bootstrap_servers.split(":")
    (to,) = kafka["to"]
    cluster = to["podSelector"]["matchLabels"]["strimzi.io/cluster"]
    assert to == {"podSelector": {"matchLabels": {"strimzi.io/cluster": cluster}}}
    assert host == f"{cluster}-kafka-bootstrap"
    assert kafka["ports"] == [{"protocol": "TCP", "port": int(port)}]
    for kind in ("KafkaTopic", "KafkaUser"):
        assert {each["metadata"]["labels"]["strimzi.io/cluster"] for each in overlay.of(kind)} == {cluster}
