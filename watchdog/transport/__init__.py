"""Speaking to one `pardbg collect` on each node of a job: lines, processes that carry them, deadlines. Payloads are opaque."""
