"""MoE routing from files: counts, verdicts, the command."""
