"""One look at a running job: its processes, stacks, sources, logs and recorders."""
