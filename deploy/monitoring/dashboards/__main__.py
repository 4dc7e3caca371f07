"""Write the dashboards: `python -m deniable.deploy.monitoring.dashboards`."""

from deniable.deploy.monitoring.dashboards.files import FOLDER, written

for name, text in written().items():
    (FOLDER / name).write_text(text, encoding="utf-8")
