"""Grafana's dashboards, written as JSON to `deploy/monitoring/grafana`.

May import no sibling. Begin with `files`; `frame` has what every dashboard shares, `panels` builds one panel.
"""
