"""The dashboards as files that Grafana imports."""

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deniable.deploy.monitoring.dashboards import devices, estimates, health, privacy
from deniable.deploy.monitoring.dashboards.builder import build

FOLDER = Path(__file__).parents[1] / "grafana"


def written() -> dict[str, str]:
    """Return the text of each file by its name."""
    dashboards = {
        "health.json": build("deniable-health", health.TITLE, health.QUESTION, health.ROWS),
        "estimates.json": build(
            "deniable-estimates", estimates.TITLE, estimates.QUESTION, estimates.ROWS, estimates.VALUES
        ),
        "privacy.json": build("deniable-privacy", privacy.TITLE, privacy.QUESTION, privacy.ROWS),
        "devices.json": build("deniable-devices", devices.TITLE, devices.QUESTION, devices.ROWS),
    }
    return {
        name: json.dumps(dashboard, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for name, dashboard in dashboards.items()
    }
