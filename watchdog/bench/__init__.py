"""Speed and memory, measured on simulated evidence, with a peer on the same files in the same run."""
