"""The metric catalogue, and the Grafana dashboards and alert rules that go with it; `json/` and `rules/` are generated."""
