"""Tests of what looks at live processes."""
