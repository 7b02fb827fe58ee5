"""Tests of how a probe counts routing."""
