"""Tests of the collectors; one file a module."""
