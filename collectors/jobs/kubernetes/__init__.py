"""Everything that the Kubernetes API knows of a job: its pods, which of them run, and how the others ended."""
