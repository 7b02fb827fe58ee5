"""Signs of life of ranks, cheap enough to be read every second for as long as a job runs."""
