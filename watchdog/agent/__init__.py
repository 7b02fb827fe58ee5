"""The sidecar: one process a node that watches the ranks cheaply, and lets a scan judge when one is silent for too long."""
