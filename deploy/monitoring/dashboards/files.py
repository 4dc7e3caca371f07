"""The dashboards as files that Grafana imports."""

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deniable.deploy.monitoring.dashboards.devices import devices
from deniable.deploy.monitoring.dashboards.estimates import estimates
from deniable.deploy.monitoring.dashboards.health import health
from deniable.deploy.monitoring.dashboards.privacy import privacy

FOLDER = Path(__file__).parents[1] / "grafana"


def written() -> dict[str, str]:
    """Return the text of each file by its name."""
    dashboards = {
        "health.json": health(),
        "estimates.json": estimates(),
        "privacy.json": privacy(),
        "devices.json": devices(),
    }
    return {
        name: json.dumps(dashboard, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for name, dashboard in dashboards.items()
    }
