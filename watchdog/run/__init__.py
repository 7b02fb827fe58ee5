"""Starting a job so that it can be seen from then on: what its environment gets, and the exec that leaves nothing of pardbg."""
