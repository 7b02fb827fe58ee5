"""Frames of libraries that the stacks of reports show, innermost first, and frames of native code."""

from pardbg.watchdog.model.recording import Frame

_SITE = "/opt/venv/lib/python3.11/site-packages"
_LIB = "/usr/lib/python3.11"


def library(name: str, file: str, line: int) -> Frame:
    """A frame of an installed package."""
    return Frame(name=name, filename=f"{_SITE}/{file}", line=line)


def native(name: str, file: str = "/usr/lib/x86_64-linux-gnu/libcuda.so.1") -> Frame:
    """A frame of native code."""
    return Frame(name=name, filename=file, line=0)


def standard(name: str, file: str, line: int) -> Frame:
    """A frame of Python's own library."""
    return Frame(name=name, filename=f"{_LIB}/{file}", line=line)


NCCL_LIBRARY = f"{_SITE}/nvidia/nccl/lib/libnccl.so.2"
SAVE = (
    library("_write_record", "torch/serialization.py", 944),
    library("_save", "torch/serialization.py", 1204),
    library("save", "torch/serialization.py", 966),
)
LOAD = (
    library("read_record", "torch/serialization.py", 1960),
    library("_load", "torch/serialization.py", 2114),
    library("load", "torch/serialization.py", 1516),
)
LOADER = (
    standard("wait", "threading.py", 331),
    standard("get", "queue.py", 180),
    library("_try_get_data", "torch/utils/data/dataloader.py", 1275),
    library("_next_data", "torch/utils/data/dataloader.py", 1448),
    library("__next__", "torch/utils/data/dataloader.py", 733),
)
COMPILE = (
    library("codegen", "torch/_inductor/graph.py", 2040),
    library("compile_fx_inner", "torch/_inductor/compile_fx.py", 781),
    library("_compile_inner", "torch/_dynamo/convert_frame.py", 1211),
    library("__call__", "torch/_dynamo/convert_frame.py", 1541),
)
COMPILER_SYNC = (
    library("all_gather_object", "torch/distributed/distributed_c10d.py", 3160),
    library("all_gather_states", "torch/_dynamo/symbolic_convert.py", 2905),
)
DATASET_MAP = (
    library("_map_single", "datasets/arrow_dataset.py", 3481),
    library("map", "datasets/arrow_dataset.py", 3147),
)
STORE_GET = (
    library("_store_based_barrier", "torch/distributed/distributed_c10d.py", 1010),
    library("init_process_group", "torch/distributed/distributed_c10d.py", 1764),
)
SYNCHRONIZE = (library("synchronize", "torch/cuda/__init__.py", 1083),)
RPC_WAIT = (
    library("_invoke_rpc", "torch/distributed/rpc/api.py", 764),
    library("rpc_sync", "torch/distributed/rpc/api.py", 809),
)
DESTROY = (
    library("destroy_process_group", "torch/distributed/distributed_c10d.py", 2214),
    library("wrapper", "torch/distributed/c10d_logger.py", 81),
)
LAUNCH_TOP = (native("cuLaunchKernel"), native("cudaLaunchKernel", f"{_SITE}/nvidia/cuda_runtime/lib/libcudart.so.12"))
