"""pardbg: which rank holds up a distributed training job, what it does, and who waits for it."""

__version__ = "0.1.0"
