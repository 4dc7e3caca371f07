"""Grafana's dashboards, written as JSON to `deploy/monitoring/grafana`."""
