"""Metrics, alert rules, dashboards."""
