"""What must not change a verdict: folders, files that are no evidence, chatter of innocent programs."""

from pathlib import PurePath

from msgspec.structs import replace

from pardbg.watchdog.sim.casebook.case import Case
from pardbg.watchdog.sim.casebook.draw import Draw

_CHATTER = (
    "2026-11-29 13:58:01,114 | INFO | trainer | resuming from step 4000\n",
    "  0%|          | 0/5000 [00:00<?, ?it/s]\r  1%|1         | 50/5000 [00:41<1:08:20,  1.21it/s]\n",
    "node00:20000:20071 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>\n",
    "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py:557: UserWarning: 8 workers will be created\n",
    "wandb: Syncing run amber-lake-17\n",
    "2026-11-29 13:59:40,902 | WARNING | trainer | gradient norm 11.2 clipped to 1.0\n",
    "W1129 13:57:59.201000 20000 site-packages/torch/distributed/run.py:766] Setting OMP_NUM_THREADS to 1\n",
)
_STRANGERS = {
    "config.yaml": "seed: 17\nlearning_rate: 3.0e-4\nbatch_size: 512\n",
    "requirements.txt": "torch==2.9.1\nnumpy\n",
    "run.sh": "#!/bin/sh\nexec torchrun --nproc-per-node 8 train.py\n",
}


def dress(case: Case, draw: Draw) -> Case:
    """The same job as other people would have collected it."""
    files = dict(case.files)
    if draw.number(0, 1):
        files |= {name: text.encode() for name, text in _STRANGERS.items()}
    for name in sorted(files):
        if name.startswith("log_rank"):
            files[name] = "".join(draw.several(_CHATTER)).encode() + files[name]
    if draw.number(0, 1):
        files = {_sort_into_folder(name): content for name, content in files.items()}
    return replace(case, files=files)


def _sort_into_folder(name: str) -> str:
    kind = PurePath(name).name.partition("_")[0]
    folder = {"stack": "stacks/", "nccl": "dumps/", "log": "logs/", "gpu": "metrics/", "process": "processes/"}.get(kind, "")
    return f"{folder}{name}"
