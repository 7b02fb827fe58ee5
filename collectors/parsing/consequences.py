"""Exceptions that are not a rank's own: what it says when a peer has gone, and what launchers and wrappers say.

When one rank dies its peers fail too, in the middle of a collective, each with a traceback of its own. Four standings, because
they mean different things for what the same rank says next, and for whom to blame:

* own: what the program, its device or its machine does wrong: the built-in types of Python, CUDA's errors, memory;
* a lost peer: what a peer, a store or a wait for others did to this rank. The process unwinds from here, so that whatever
  follows is a consequence as well;
* unsure: neither is clear, as where a library of communication fails without saying why. It may be either, and accuses nobody;
* a wrapper: a launcher, a signal, the other end of a DataLoader. The search for the rank's own exception goes on.

The words are those of PyTorch (c10d), gloo, NCCL, HCCL, Horovod, Ray, vLLM, UCX, MPI and JAX as public reports quote them.
"""

import re
from enum import Enum

_WRAPPER = re.compile(
    r"^(?:[\w.]*\.)?(?:ChildFailedError|SignalException|SIGTERMException|ProcessRaisedException|ProcessExitedException"
    r"|HostsUpdatedInterrupt|Rendezvous\w*Error|KeyboardInterrupt|SystemExit|BrokenPipeError|ConnectionResetError"
    r"|ConnectionAbortedError)\b"
    r"|^Exception: process \d+ terminated with "  # torch.multiprocessing.spawn before torch 1.6
    r"|^EOFError$"  # with a message it speaks of a truncated file
    r"|^subprocess\.CalledProcessError: Command '\[.{0,1000}?'--local[_-]rank="  # torch.distributed.launch, of a rank
    r"|^[\w.]+: Caught \w+ in "  # DataLoader and DataParallel: the original follows
    r"|is killed by signal: Terminated"
)
_OF_OTHER_PROCESS = re.compile(  # by their types alone: they tell what became of somebody else
    r"^(?:ray\.exceptions\.\w+|(?:[\w.]*\.)?(?:Ray(?:Actor|Task)Error|Actor(?:Died|Unavailable)Error|WorkerCrashedError"
    r"|EngineDeadError))\b"
)
_OUTSIDE = re.compile(  # a service that is no part of the job, and what its own machine refuses
    r"HTTPS?ConnectionPool|^(?:requests|urllib3?|httpx|httpcore|aiohttp|botocore|huggingface_hub|google|azure|wandb)\."
    r"|Address already in use|Unable to (?:find|resolve) (?:address|interface|hostname)"
)
_OWN_DEVICE = re.compile(
    r"(?:CUDA|HIP)(?: driver)? error|unhandled cuda error|Cuda failure|out of memory|OutOfMemoryError|No space left"
    r"|DataLoader (?:worker|timed out)",
    re.IGNORECASE,
)
_OWN_TYPE = re.compile(
    r"^(?:[\w.]*\.)?(?:Key|Index|Lookup|Type|Value|Attribute|Assertion|ZeroDivision|FloatingPoint|Arithmetic|Overflow|Name"
    r"|UnboundLocal|Import|ModuleNotFound|FileNotFound|FileExists|IsADirectory|NotADirectory|Permission|Memory|Recursion"
    r"|NotImplemented|Unicode\w*|Syntax|Indentation|JSONDecode|EOF|Pickling|Unpickling|CalledProcess)Error\b"
    r"|^subprocess\.TimeoutExpired\b"
)
_LOST_TYPE = re.compile(
    r"^(?:[\w.]*\.)?(?:Dist(?:Network|Store)Error|HorovodInternalError"
    r"|UCX(?:Connection\w+|Closed\w*|NotConnected|Unreachable))\b"
    r"|^[\w.]*(?:Xla|Jax)RuntimeError: (?:UNAVAILABLE|DEADLINE_EXCEEDED|ABORTED|CANCELLED)\b"
)
_LOST = re.compile(
    r"(?i:connection (?:was |has been )?(?:closed|reset|refused|aborted|lost)|broken pipe|pair closure"
    r"|(?:by|from|of) (?:a |the )?(?:remote|peer)\b|remote (?:process|server) (?:exited|has|shut)"
    r"|another rank)"
    r"|(?:unbound_buffer|pair|context|buffer|listener|socket)\.cc:\d+\]"  # gloo's; its device.cc speaks of the machine
    r"|Timed out waiting \d+ms for (?:recv|send) operation|op\.preamble\.length|connectFullMesh failed"
    r"|remote process exited|ncclRemoteError|NCCL communicator was aborted"
    r"|[Cc]aught collective operation timeout|Timeout at NCCL work|detected by watchdog|[Cc]ollective timed out"
    r'|the "should dump" flag|Stop_waiting response|connect\(\) timed out'
    r"|(?:sendBytes|recvBytes|recvValue|recvVector|sendValue) failed|[Ff]ailed to recv\b|[Ss]ocket recv failed"
    r"|socketStartConnect: Connect to|Proxy Call to rank \d+ failed|completion from peer .* with error"
    r"|store->get\('[^']*'\) got error|[Ww]ait timeout after \d+ ?ms, keys|Socket Timeout|store based barrier"
    r"|client socket has (?:timed out|failed)|Timed out after \d+ seconds waiting for clients"
    r"|monitoredBarrier|Detected mismatch between collectives on ranks"
    r"|^[\w.]*DistBackendError: .*(?:[Tt]ime(?:d )?out|remote|[Pp]eer)"
    r"|EI0002\b|EI0006\b|from remote rank|MPI_ERR_(?:PROC_FAILED|REVOKED)|RPC call to \w+ timed out"
    r"|root cause above|for the root cause|[Cc]heck rank \d+ logs",  # it points to another's error
    re.DOTALL,
)
_MAY_BE_LOST = re.compile(
    r"(?:time[ds]?[ _-]?out|deadline|disconnected|connection (?:to|with|from|error|timed)|\bpeers?\b|\bremote\b|sockets?\b"
    r"|TCPStore|heartbeat|barrier|unreachable|unavailable|shut(?:ting)? ?down|communicator|\b[nhr]ccl|\bgloo\b|\bMPI_|\bRPC\b"
    r"|(?:other|another|across|between|different)(?: all)? (?:ranks?|workers?|processes)|rank ?\d+ and rank ?\d+"
    r"|\b(?:died|dead)\b|not alive|aborted|cancell?ed)"
    r"|^[\w.]*(?:Timeout|Connection|Disconnect|Unavailable|Died|Dead|Closed)\w*(?::|$)|^(?:_?queue\.Empty|zmq\.)|^(?:mpi4py|etcd)\.",
    re.IGNORECASE,
)
_OF_COMMUNICATION = re.compile(
    r"/(?:torch/distributed/(?:distributed_c10d|rendezvous|rpc)|torch/_C/_distributed|deepspeed/comm/|horovod/|mpi4py/|ray/|ucp/"
    r"|torch_npu/distributed/|jax/_src/distributed)"
)
_BOILERPLATE = re.compile(r"It can be also caused by[^\n]*")  # NCCL says so of every error of the system
_QUOTES_LIBRARY = re.compile(r"\b[NH]CCL error|Hccl", re.IGNORECASE)  # which tells why in the lines below


class Standing(Enum):
    """What an exception is to the rank that raised it."""

    OWN = "own"
    PEER_LOST = "peer-lost"
    UNSURE = "unsure"
    WRAPPER = "wrapper"


def judge_exception(words: str, where: str = "") -> Standing:
    """Sorts an exception by its line ``Type: message`` and the few lines after it, and by the file it was raised in."""
    words = _BOILERPLATE.sub("", words)
    first_line = words.split("\n", 1)[0]
    if _WRAPPER.search(first_line):
        return Standing.WRAPPER
    if _OF_OTHER_PROCESS.match(first_line):
        return Standing.PEER_LOST
    told = words if _QUOTES_LIBRARY.search(first_line) else first_line
    if _OUTSIDE.search(first_line) or _OWN_DEVICE.search(told) or _OWN_TYPE.match(first_line):
        return Standing.OWN
    if _LOST_TYPE.match(first_line) or _LOST.search(words):
        return Standing.PEER_LOST
    is_unsure = _MAY_BE_LOST.search(first_line) or _OF_COMMUNICATION.search(where)
    return Standing.UNSURE if is_unsure else Standing.OWN
