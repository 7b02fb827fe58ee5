"""The agent's server, and the scans that ask agents."""
