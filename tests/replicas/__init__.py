"""Tests of what is told of replicas."""
