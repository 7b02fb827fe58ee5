"""Checks a parallel layout before it runs: which ranks form which groups, what cannot work, and what it costs."""
