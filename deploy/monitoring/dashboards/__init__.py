"""Grafana's dashboards: what each shows, and the JSON of it in `deploy/monitoring/grafana`."""
