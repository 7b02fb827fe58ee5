"""Diagnosing a job that runs now: two samples of everything that can be seen of it, then the judge."""
