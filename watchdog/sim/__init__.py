"""Evidence of simulated jobs with a known truth: the job is played through, and the files follow from where it stops."""
