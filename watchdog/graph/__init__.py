"""Who waits for whom: from recordings and stacks to fronts, meetings and the wait-for graph. Pure."""
