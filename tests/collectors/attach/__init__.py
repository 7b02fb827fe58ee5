"""Shots: what they are made of, and what they must never do."""
