"""Scans of jobs that need no process: their nodes are simulated."""
