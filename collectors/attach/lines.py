"""The Python that a rank runs: it starts torch's own worker server, and later ends it. Pure text.

It imports and loads nothing, leaves no name in the rank's own modules, and raises nothing. What it keeps is one object, out of
everybody's way: a forked child must not end the server of its parent. The garbage collector is off meanwhile: it would run
other code, which may need what the borrowed thread holds. Nothing takes the dynamic linker's lock: another thread may be stuck
in it.
"""

LOG_LEVEL_HERE = "@pardbg-log-level@"
"""Stands for the address at which torch's C++ code keeps how much it says; whoever shoots knows it. 0: not known."""

_KEEPER = "_pardbg_attached"

_QUIET = """
def quietly(call):
    import sys
    level = sys.modules["ctypes"].c_int.from_address({level}) if {level} else None
    before = level.value if level is not None else 0
    try:
        if level is not None:
            level.value = 2
        return call()
    finally:
        if level is not None:
            level.value = before
"""
_ATTACH = """
def attach(folder):
    import sys
    modules = sys.modules
    ctypes, json, os = (modules[name] for name in ("ctypes", "json", "os"))
    bindings, c10d = modules["torch._C._distributed_c10d"], modules["torch.distributed.distributed_c10d"]
    if "{keeper}" in modules or not c10d.is_initialized():
        return
    world = c10d._world
    lines = []
    for group, members in world.pg_group_ranks.items():
        ranks = sorted(members, key=members.get)
        line = {{"name": str(world.pg_names.get(group, "")), "desc": str(getattr(group, "group_desc", "")),
                "backend": str((world.pg_map.get(group) or ("",))[0]), "runs": [[rank, 1, 1] for rank in ranks]}}
        lines.append(json.dumps(line) + "\\n")
    file = os.open(folder + "/groups.jsonl", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, "".join(lines).encode())
    finally:
        os.close(file)
    server = quietly(lambda: bindings._WorkerServer(folder + "/server.sock"))
    ctypes.c_ssize_t.from_address(id(server)).value += 1
    keeper = type(sys)("{keeper}")
    keeper.server = server
    modules["{keeper}"] = keeper
"""
_DETACH = """
def detach():
    import sys
    keeper = sys.modules.pop("{keeper}", None)
    if keeper is not None:
        quietly(keeper.server.shutdown)
"""
_AROUND = """
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


def attach_lines(folder: str) -> str:
    """Starts the server on a socket in a folder, and writes the members of all groups there."""
    return guarded(_ATTACH.format(keeper=_KEEPER) + f"\nattach({folder!r})\n")


def detach_lines() -> str:
    """Ends the server. Only after it has answered: one that has not come up yet would be waited for, for ever."""
    return guarded(_DETACH.format(keeper=_KEEPER) + "\ndetach()\n")


def guarded(lines: str) -> str:
    """In a namespace of its own, as one expression statement of `__main__`, which raises nothing; `quietly` is there."""
    whole = _QUIET.format(level=LOG_LEVEL_HERE) + lines
    return f"exec({_AROUND!r}, {{'lines': {whole!r}, '__name__': 'pardbg_attach'}})\n"
