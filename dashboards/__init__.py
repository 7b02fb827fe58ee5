"""Grafana dashboards and alert rules, generated from the metric catalogue (from part 6 of the plan on)."""
