"""Tests of how a probe looks at replicas."""
