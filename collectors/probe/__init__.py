"""What runs inside training, and the forms of what it leaves there for others to read.

Standard library only, and nothing of the rest of pardbg: `startup/sitecustomize.py` loads this package by its path, under
another name, in whatever environment the job has. Hence the relative imports.

What it does to a rank: it listens where torch itself offers hooks (a group is made, an optimizer has stepped, a compilation
begins), puts thin wrappers around `torch.save`, `Module.eval`, what DistributedDataParallel calls at the begin of a pass,
`sys.exit` and `os._exit`, and starts torch's worker server.
It issues no collective, never waits for a device, keeps no thread of its own, and never raises into training: what fails is
noted in `rank.json` and left out. Cost: under 5 us a hook and 20 us a step, some 10 ms when the first group is made; of a
router of a mixture of experts (`routing/`) under 20 us a pass and layer, the step's end included; of replicas (`replicas/`)
1 us a pass and 1 ms every 64th step; while the rank lives nothing is written to a disk. It stays out of every process in which
RANK is not set or torch.distributed is not imported. ``PARDBG_PROBE=0`` switches it off.
"""
