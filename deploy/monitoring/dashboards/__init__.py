"""Grafana's dashboards, written as JSON to `deploy/monitoring/grafana`.

May import `metrics_table`. Begin with `health`, a table of panels; `panels` says what a table holds,
`builder` makes a dashboard of it.
"""
