"""Write the dashboards: `python -m deploy.monitoring.dashboards`."""

from deploy.monitoring.dashboards.files import FOLDER, written

for name, text in written().items():
    (FOLDER / name).write_text(text, encoding="utf-8")
