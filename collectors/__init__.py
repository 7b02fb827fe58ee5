"""From the outside world to evidence: the only package that reads files, processes and devices."""
