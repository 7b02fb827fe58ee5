"""The Python that a rank runs when it is attached to. Pure text.

It imports and loads nothing that the rank has not loaded itself, leaves no name in the rank's own modules, and raises nothing.
The garbage collector is off meanwhile: it would run other code, which may need what the borrowed thread holds. Nothing takes
the dynamic linker's lock: another thread may be stuck in it. An interpreter that ends waits for the lines, for a while: it
would make the thread exit, and C++ frames on its stack end the process for that (exit code 134 of a job that was through).

A rank without a GPU writes its recorder down at once, and that is all. NCCL's recorder asks CUDA about its unfinished events,
which may take for ever; a server of torch's own does it without the interpreter lock. So there the lines only start that
server, others end it once it has answered.
"""

from pardbg.collectors.probe.places import GROUPS_FILE, SERVER_SOCKET

LOG_LEVEL_HERE = "@pardbg-log-level@"
"""Stands for the address at which torch's C++ code keeps how much it says; whoever shoots knows it. 0: not known."""

# In a rank's `sys.modules` while a server is kept in it: a forked child must not end the server of its parent.
_KEEPER = "_pardbg_attached"

_SHARE = 4  # of the room that is left, the part that a file may take: one of so many
_PATIENCE_S = 10
_LONGEST_PATH = 100  # a socket's name has 108 bytes with its end
_TRIED_THREADS = 16  # the server starts nine

_GUARD = """
def run():
    import sys
    gate, getpid = sys.modules["_thread"].allocate_lock(), sys.modules["posix"].getpid
    own, exits = getpid(), getattr(sys.modules.get("threading"), "_threading_atexits", [])
    wait = lambda: getpid() != own or gate.acquire(True, @patience@)
    gate.acquire()
    exits.append(wait)
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
        if wait in exits:
            exits.remove(wait)
        gate.release()
run()
"""
_LINES = """
import sys
modules = sys.modules

def attach(folder, rank):
    json = modules["json"]
    bindings, c10d = modules["torch._C._distributed_c10d"], modules["torch.distributed.distributed_c10d"]
    lines = []
    backends = set()
    for name, desc, backend, members in read_groups(c10d._world):
        backends.add(backend)
        runs = [[one, 1, 1] for one in sorted(members, key=members.get)]
        lines.append(json.dumps({"name": name, "desc": desc, "backend": backend, "runs": runs}) + "\\n")
    write(folder, "@groups@", "".join(lines).encode())
    if any("nccl" in backend for backend in backends):
        serve(folder)
    elif getattr(bindings, "_dump_fr_trace", None) is not None:
        dump = lambda: bindings._dump_fr_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False)
        write(folder, "dump_rank_%d" % rank, without_compiler(dump))

# No group is held for a moment: if the program destroyed its groups meanwhile, the last to hold one would have to end it, and
# a thread of the group itself cannot. So what is told of them is read without them, by calls that nothing comes between.
def read_groups(world):
    operator = modules["operator"]
    first = operator.itemgetter(0)
    def told(groups, of=None):
        ids = list(map(id, groups))
        values = list(groups.values()) if of is None else list(map(of, groups.values()))
        return dict(zip(ids, values)) if ids == list(map(id, groups)) and len(ids) == len(values) else {}
    members, names = told(world.pg_group_ranks), told(world.pg_names)
    backends = told(world.pg_map, first)
    descs = {}
    if hasattr(modules["torch._C._distributed_c10d"].ProcessGroup, "group_desc"):
        ids, values = list(map(id, world.pg_names)), list(map(operator.attrgetter("group_desc"), world.pg_names))
        descs = dict(zip(ids, values)) if len(ids) == len(values) else {}
    for one, ranks in members.items():
        yield str(names.get(one, "")), str(descs.get(one, "")), str(backends.get(one, "")), ranks

def write(folder, name, data):
    os = modules["os"]
    room = os.statvfs(folder)
    if room.f_blocks and room.f_bavail * room.f_frsize < @share@ * len(data):
        raise OSError("no room")  # others need it more: a data loader dies where shared memory is full
    aside = os.path.join(folder, name + ".new")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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

# Also beside a thread that is importing it just now: that import may last for ever.
def without_compiler(call):
    names = vars(modules["torch"])
    if "_inductor" in names:
        return call()
    standin = names["_inductor"] = NoCompiler("torch._inductor")
    try:
        return call()
    finally:
        if names.get("_inductor") is standin:
            del names["_inductor"]

def serve(folder):
    if "@keeper@" in modules:
        return
    os, bindings = modules["os"], modules["torch._C._distributed_c10d"]
    path = folder + "/@socket@"
    if len(os.fsencode(path)) > @longest@:
        return
    check_room(os)
    if os.path.lexists(path):
        os.unlink(path)  # of a server that was ended
    server = quietly(lambda: without_signals(lambda: bindings._WorkerServer(path)))
    modules["ctypes"].c_ssize_t.from_address(id(server)).value += 1  # not even the end of the process ends it
    keeper = modules["@keeper@"] = type(sys)("@keeper@")
    keeper.server = server

# Where one of the server's threads cannot be made, torch ends the process. So as many, and some more, are tried before.
def check_room(os):
    with open("/proc/self/limits", "rb") as file:
        space = next(line for line in file.read().splitlines() if line.startswith(b"Max address space"))
    if space.split()[3] != b"unlimited":
        raise OSError("address space is limited")
    start, time = modules["_thread"].start_new_thread, modules["time"]
    gate = modules["_thread"].allocate_lock()
    started = []
    def wait():
        started.append(modules["_thread"].get_native_id())
        with gate:
            pass
    with gate:
        for _ in range(@tried@):
            start(wait, ())
    until = time.monotonic() + 1.0
    while len(started) < @tried@ or any(os.path.exists("/proc/self/task/%d" % number) for number in started):
        if time.monotonic() > until:
            raise OSError("threads that were tried do not end")
        time.sleep(0.0002)

# Threads inherit what is blocked: the program's signals are for its own threads, which may wait for them.
def without_signals(call):
    signal = modules["_signal"]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {4, 5, 6, 7, 8, 11})
    try:
        return call()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

def detach():
    keeper = modules.get("@keeper@")
    if keeper is not None and is_idle(modules["os"]):
        quietly(keeper.server.shutdown)
        modules.pop("@keeper@", None)

# `shutdown` waits for requests that are being answered, with the interpreter lock held. A thread without one waits in `accept`,
# or for the condition that all of them share, which is 48 bytes long.
def is_idle(os):
    accepting, waits = 0, []
    for number in os.listdir("/proc/self/task"):
        words = [read_word(number, name) for name in ("comm", "syscall")]
        if words[0][:1] == [b"pt_workerserver"]:
            call = words[1][0]
            accepting += call in (b"43", b"288")
            if call == b"202":
                waits.append(int(words[1][1], 16))
            elif call not in (b"43", b"288"):
                return False
    waits.sort()
    conditions = sum(1 for at, one in enumerate(waits) if not at or one - waits[at - 1] >= 48)
    return bool(accepting) and conditions <= accepting

def read_word(number, name):
    try:
        with open("/proc/self/task/%s/%s" % (number, name), "rb") as file:
            return file.read().split()
    except OSError:
        return []  # it has ended

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
    """Ends the server, unless it is at work. Only after it has answered: else it may be waited for, for ever."""
    return _guarded("detach()")


def _guarded(call: str) -> str:
    """In a namespace of its own, as one expression statement of `__main__`, which raises nothing."""
    lines = _LINES + call
    names = {"@groups@": GROUPS_FILE, "@socket@": SERVER_SOCKET, "@keeper@": _KEEPER, "@level@": LOG_LEVEL_HERE}
    numbers = {"@share@": _SHARE, "@longest@": _LONGEST_PATH, "@tried@": _TRIED_THREADS}
    for name, value in {**names, **numbers}.items():
        lines = lines.replace(name, str(value))
    guard = _GUARD.replace("@patience@", str(_PATIENCE_S))
    return f"exec({guard!r}, {{'lines': {lines!r}, '__name__': 'pardbg_attach'}})\n"
