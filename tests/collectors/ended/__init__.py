"""Tests of what ranks have left that have ended."""
