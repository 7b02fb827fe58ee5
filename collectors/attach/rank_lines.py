"""The Python that a rank runs when it is attached to: it writes down its groups and its flight recorder, no more. Pure.

It imports nothing that the rank has not imported itself, leaves no name in the rank's modules, and raises nothing. Where the
rank has torch's compiler, the dump has call sites; elsewhere asking for them would import it: 823 modules, seconds.
"""

from pardbg.collectors.attach.lines import guarded
from pardbg.collectors.probe.places import GROUPS_FILE, SERVER_SOCKET

_KEEPER = "_pardbg_attached"
_LINES = """
def attach(folder, rank):
    import sys
    modules = sys.modules
    json, os = modules["json"], modules["os"]
    bindings, c10d = modules["torch._C._distributed_c10d"], modules["torch.distributed.distributed_c10d"]
    world = c10d._world
    lines = []
    for group, members in list(world.pg_group_ranks.items()):
        ranks = sorted(members, key=members.get)
        lines.append(json.dumps({{
            "name": str(world.pg_names.get(group, "")), "desc": str(getattr(group, "group_desc", "")),
            "backend": str((world.pg_map.get(group) or ("",))[0]), "runs": [[one, 1, 1] for one in ranks]}}) + "\\n")
    write(os, folder, {groups!r}, "".join(lines).encode())
    has_sites = "torch._inductor.codecache" in modules
    for name in ("_dump_nccl_trace", "_dump_fr_trace"):
        dump = getattr(bindings, name, None)
        if dump is not None and (name == "_dump_fr_trace" or c10d.is_initialized()):
            try:
                data = dump(includeCollectives=True, includeStackTraces=has_sites, onlyActive=False)
            except TypeError:
                data = dump()
            if b"record_id" in data or name == "_dump_fr_trace":
                write(os, folder, "dump_rank_%d" % rank, data)
                break

def write(os, folder, name, data):
    aside = os.path.join(folder, name + ".new")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data):]
    finally:
        os.close(descriptor)
    os.replace(aside, os.path.join(folder, name))

def keep(folder):
    import sys
    modules = sys.modules
    if {keeper!r} not in modules:
        bindings = modules["torch._C._distributed_c10d"]
        server = quietly(lambda: bindings._WorkerServer(folder + "/{socket}"))
        modules["ctypes"].c_ssize_t.from_address(id(server)).value += 1  # for good: not even the end of the process ends it
        modules[{keeper!r}] = type(sys)({keeper!r})
"""


def attach_lines(folder: str, rank: int, *, keep_server: bool = False) -> str:
    """Writes groups and recorder to a folder; ``keep_server``: also starts torch's worker server there, for good."""
    calls = f"attach({folder!r}, {rank})\n" + (f"keep({folder!r})\n" if keep_server else "")
    lines = _LINES.format(keeper=_KEEPER, groups=GROUPS_FILE, socket=SERVER_SOCKET) + calls
    return guarded(lines)
