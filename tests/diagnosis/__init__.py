"""From simulated and real evidence to verdicts."""
