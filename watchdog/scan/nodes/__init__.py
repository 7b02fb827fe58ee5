"""A scan of a job that runs on many nodes: what is asked of each node's `pardbg collect`, and how answers become one job."""
