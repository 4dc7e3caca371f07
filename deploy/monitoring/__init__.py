"""Files for Prometheus and Grafana: rules, dashboards, the table of metrics.

May import no sibling. Begin with `metrics_table`; `dashboards` writes the JSON in `grafana`.
"""
