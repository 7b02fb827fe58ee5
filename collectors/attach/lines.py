"""The Python that a rank runs when it is attached to. Pure text.

It imports and loads nothing that the rank has not loaded itself, leaves no name in the rank's own modules, and raises nothing.
The garbage collector is off meanwhile: it would run other code, which may need what the borrowed thread holds. Nothing takes
the dynamic linker's lock: another thread may be stuck in it.

A rank without a GPU writes its recorder down at once, and that is all. NCCL's recorder asks CUDA about its unfinished events,
which may take for ever; a server of torch's own does it without the interpreter lock. So there the lines only start that
server, others end it once it has answered.
"""

from pardbg.collectors.probe.places import GROUPS_FILE, SERVER_SOCKET

LOG_LEVEL_HERE = "@pardbg-log-level@"
"""Stands for the address at which torch's C++ code keeps how much it says; whoever shoots knows it. 0: not known."""

# In a rank's `sys.modules` while a server is kept in it: a forked child must not end the server of its parent.
_KEEPER = "_pardbg_attached"

_GUARD = """
def run():
    import sys
    collector = sys.modules.get("gc")
    was_on = collector is not None and collector.isenabled()
    if was_on:
        collector.disable()
    try:
        exec(lines, {'__name__': 'pardbg_attach'})
    except BaseException:
        pass
    finally:
        if was_on:
            collector.enable()
run()
"""
_LINES = """
import sys
modules = sys.modules

def attach(folder, rank):
    json = modules["json"]
    bindings, c10d = modules["torch._C._distributed_c10d"], modules["torch.distributed.distributed_c10d"]
    world = c10d._world
    lines = []
    backends = set()
    for group, members in list(world.pg_group_ranks.items()):
        backend = str((world.pg_map.get(group) or ("",))[0])
        backends.add(backend)
        lines.append(json.dumps({
            "name": str(world.pg_names.get(group, "")), "desc": str(getattr(group, "group_desc", "")), "backend": backend,
            "runs": [[one, 1, 1] for one in sorted(members, key=members.get)]}) + "\\n")
    write(folder, "@groups@", "".join(lines).encode())
    if any("nccl" in backend for backend in backends):
        serve(folder)
    elif getattr(bindings, "_dump_fr_trace", None) is not None:
        dump = lambda: bindings._dump_fr_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False)
        write(folder, "dump_rank_%d" % rank, without_compiler(dump))

def write(folder, name, data):
    os = modules["os"]
    aside = os.path.join(folder, name + ".new")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data):]
    finally:
        os.close(descriptor)
    os.replace(aside, os.path.join(folder, name))

# To name call sites, torch looks for the code that its compiler has made, and would import the compiler for that: 823 modules,
# seconds. This stands in its place; to everybody else it is the compiler.
class NoCompiler(type(sys)):
    def __getattr__(self, name):
        if sys._getframe(1).f_globals is globals():
            raise AttributeError(name)
        return getattr(modules["importlib"].import_module("torch._inductor"), name)

def without_compiler(call):
    names = vars(modules["torch"])
    if "_inductor" in names or "torch._inductor" in modules:
        return call()
    standin = names["_inductor"] = NoCompiler("torch._inductor")
    try:
        return call()
    finally:
        if names.get("_inductor") is standin:
            del names["_inductor"]

def serve(folder):
    if "@keeper@" not in modules:
        bindings = modules["torch._C._distributed_c10d"]
        server = quietly(lambda: bindings._WorkerServer(folder + "/@socket@"))
        modules["ctypes"].c_ssize_t.from_address(id(server)).value += 1  # not even the end of the process ends it
        keeper = modules["@keeper@"] = type(sys)("@keeper@")
        keeper.server = server

def detach():
    keeper = modules.pop("@keeper@", None)
    if keeper is not None:
        quietly(keeper.server.shutdown)

def quietly(call):
    level = modules["ctypes"].c_int.from_address(@level@) if @level@ else None
    before = level.value if level is not None else 0
    try:
        if level is not None:
            level.value = 2
        return call()
    finally:
        if level is not None:
            level.value = before

"""


def attach_lines(folder: str, rank: int) -> str:
    """Writes groups and recorder to a folder; a rank that uses NCCL starts torch's worker server there instead."""
    return _guarded(f"attach({folder!r}, {rank})")


def serve_lines(folder: str) -> str:
    """Starts the server on a socket in a folder, for later scans."""
    return _guarded(f"serve({folder!r})")


def detach_lines() -> str:
    """Ends the server. Only after it has answered: one that has not come up yet would be waited for, for ever."""
    return _guarded("detach()")


def _guarded(call: str) -> str:
    """In a namespace of its own, as one expression statement of `__main__`, which raises nothing."""
    lines = _LINES + call
    names = {"@groups@": GROUPS_FILE, "@socket@": SERVER_SOCKET, "@keeper@": _KEEPER, "@level@": LOG_LEVEL_HERE}
    for name, value in names.items():
        lines = lines.replace(name, value)
    return f"exec({_GUARD!r}, {{'lines': {lines!r}, '__name__': 'pardbg_attach'}})\n"
