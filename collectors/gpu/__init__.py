"""GPUs through NVML: one child process reads them, so that a driver that hangs holds nobody up."""
