"""Everything that Slurm knows of a job: where it runs, in which state, and if it is gone, who ended it."""
