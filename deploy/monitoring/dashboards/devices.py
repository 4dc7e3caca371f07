"""The dashboard of devices: uploads over HTTP, and what relays make of them."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deniable.deploy.monitoring.dashboards.frame import Panels, framed, some_collections
from deniable.deploy.monitoring.dashboards.panels import (
    BYTES,
    BYTES_PER_SECOND,
    NUMBER,
    REPORTS_PER_SECOND,
    described,
    durations,
    limited,
    lines,
    rate,
    series,
)
from deniable.deploy.monitoring.dashboards.relaying import relaying, shuffling
from deniable.edge.metrics import definitions as edges

UPLOADS_PER_SECOND, GROUPS_PER_SECOND = "suffix: uploads/s", "suffix: groups/s"
POSTED, OTHER = 'path="reports"', 'path!="reports"'


def devices() -> Dashboard:
    """Build the dashboard for operators of edges and relays."""
    return framed(
        "deniable-devices",
        "deniable: devices",
        "Are uploads of devices taken, and do their reports reach the workers, shuffled?",
        [some_collections()],
        {
            "Edges: uploads": _answering(),
            "Edges: Kafka and connections": _writing(),
            "Relays": relaying(),
            "Shuffling": shuffling(),
        },
    )


def _answering() -> Panels:
    requests = rate(edges.REQUESTS, POSTED)
    return (
        lines(
            "Uploads by status",
            described(
                "Are uploads taken? 204 and 200 are; 409 follows a change of the collection file, 429 a "
                "limit of one network, 503 an outage of Kafka.",
                edges.REQUESTS,
            ),
            "suffix: requests/s",
            {"{{status}}": f"sum by (status) ({requests})"},
        ),
        durations("Time to answer", "Do devices wait?", edges.ANSWER_SECONDS),
        lines(
            "Groups rejected",
            described("Why are groups of uploads rejected?", edges.GROUPS_REJECTED),
            GROUPS_PER_SECOND,
            {"{{reason}}": f"sum by (reason) ({rate(edges.GROUPS_REJECTED)})"},
        ),
        lines(
            "Other requests",
            described("What else is asked for? Lists of collections, probes, the try page.", edges.REQUESTS),
            "suffix: requests/s",
            {"{{path}}": f"sum by (path) ({rate(edges.REQUESTS, OTHER)})"},
        ),
        lines(
            "Reports uploaded",
            described("How many reports do devices send?", edges.REPORTS, edges.GROUPS),
            REPORTS_PER_SECOND,
            {"reports": f"sum({rate(edges.REPORTS)})", "groups": f"sum({rate(edges.GROUPS)})"},
        ),
        lines(
            "Uploads written",
            described("How many uploads does Kafka have?", edges.UPLOADS),
            UPLOADS_PER_SECOND,
            {"all edges": f"sum({rate(edges.UPLOADS)})"},
        ),
    )


def _writing() -> Panels:
    return (
        limited(
            lines(
                "Edges that cannot write",
                described("Do edges answer 503, because Kafka is away?", edges.KAFKA_AWAY),
                "suffix: edges",
                {"of all": f"sum({series(edges.KAFKA_AWAY)})"},
            ),
            1,
        ),
        lines(
            "Uploads that wait for Kafka",
            described("Does an edge's queue fill?", edges.QUEUE_BYTES),
            BYTES,
            {"of one edge": f"max({series(edges.QUEUE_BYTES)})"},
        ),
        lines(
            "Frames",
            described(
                "How many records do edges write, and how many fail?", edges.FRAMES, edges.FRAME_FAILURES
            ),
            "suffix: frames/s",
            {
                "written": f"sum({rate(edges.FRAMES)})",
                "not acknowledged": f"sum({rate(edges.FRAME_FAILURES)})",
            },
        ),
        lines(
            "Uploads in a frame",
            described(
                "How many uploads share the cost of a record? One at low load, hundreds at high.",
                edges.UPLOADS,
                edges.FRAMES,
            ),
            "suffix: uploads",
            {"all edges": f"sum({rate(edges.UPLOADS)}) / sum({rate(edges.FRAMES)})"},
        ),
        lines(
            "Bytes written",
            described("How much network traffic and disk do uploads cause?", edges.UPLOAD_BYTES),
            BYTES_PER_SECOND,
            {"all edges": f"sum({rate(edges.UPLOAD_BYTES)})"},
        ),
        lines(
            "Connections",
            described("Are there connections left?", edges.CONNECTIONS, edges.CONNECTIONS_REFUSED),
            NUMBER,
            {
                "open, of one edge": f"max({series(edges.CONNECTIONS)})",
                "refused a second, of all": f"sum({rate(edges.CONNECTIONS_REFUSED)})",
            },
        ),
    )
