"""Correlators: from a situation to findings. Each is one pure function in a file of its own, listed in `all.py`."""
