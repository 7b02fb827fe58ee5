"""A job under construction: what each rank issues and where it stands, to become the files that it leaves.

The recordings are written by the simulator's recorder; nothing is played, so that a case can say exactly what a report said.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.sim.callsites import operation_frames
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.lines import nccl, nccl_comm
from pardbg.watchdog.sim.dump import Dump, encode_json, encode_pickle, silent_dump, whole_dump
from pardbg.watchdog.sim.history import FIRST_STEP_NS
from pardbg.watchdog.sim.instruction import CallSite, Launch, Op, Operation
from pardbg.watchdog.sim.layout import WORLD, Group
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.recorder import Recorder
from pardbg.watchdog.sim.stacks import FIRST_PID, describe_thread

_ISSUE_NS, _RUN_NS = 4_000_000, 2_500_000
_RING = 2_000
_WORK_S = 20
Edit = Callable[[Dump], None]


class Job:
    """Ranks that issue operations, stand somewhere, log and end; `files` is what is left of them."""

    def __init__(self, draw: Draw, world: int, *, backend: str = "nccl", per_host: int = 8, names: str = "node{:02d}") -> None:
        self.draw, self.ranks, self.backend = draw, range(world), backend
        self.world = Group("0", "default_pg", WORLD, tuple(self.ranks))
        self.base = (draw.own("train_step"), draw.own("train"), draw.own("main"), draw.own("<module>"))
        self._per_host, self._names = per_host, names
        self._groups = [self.world]
        self._launches: dict[int, list[tuple[Launch, int, int | None]]] = {}
        self._clock_ns = FIRST_STEP_NS
        self._threads: dict[tuple[int, int, str], list[dict[str, Any]]] = {}  # by rank, sample and form
        self._processes: dict[int, tuple[str, int | None]] = {}
        self._looks: dict[tuple[int, int], ProcessSample] = {}
        self._logs: dict[str, str] = {}
        self._series: dict[int, bytes] = {}
        self._edits: dict[int, list[Edit]] = {}
        self._lost: set[int] = set()
        self._silent: set[int] = set()
        self.dump_name = "nccl_trace_rank_{rank}".format
        self.has_job_file = True
        self.is_json = False
        self.ring = dict.fromkeys(self.ranks, _RING)

    def host(self, rank: int) -> str:
        """The host a rank runs on."""
        return self._names.format(rank // self._per_host)

    def pid(self, rank: int) -> int:
        """Its process."""
        return FIRST_PID + rank

    def pci(self, rank: int) -> str:
        """The address of its GPU, as job.json has it."""
        return f"00000000:{0x1B + 0x20 * (rank % self._per_host):02X}:00.0"

    def others(self, *ranks: int) -> tuple[int, ...]:
        """All ranks but these."""
        return tuple(rank for rank in self.ranks if rank not in ranks)

    def group(self, description: str, ranks: Iterable[int]) -> Group:
        """A new group of these ranks."""
        group = Group(str(len(self._groups)), description, description, tuple(ranks))
        self._groups.append(group)
        return group

    def at(self, op: Op, *own: Frame, base: Sequence[Frame] | None = None) -> tuple[Frame, ...]:
        """The stack of a call of ``op`` from these frames of the training code, or from the training step itself."""
        return (*operation_frames(op), *own, *(self.base if base is None else base))

    def issue(  # noqa: PLR0913 - what is left out is the usual
        self,
        op: Op,
        size: int = 1024,
        *,
        ranks: Collection[int] | None = None,
        group: Group | None = None,
        at: Sequence[Frame] | None = None,
        is_done: bool = True,
        times: int = 1,
        **operation: Any,
    ) -> None:
        """Lets ranks (all of the group, if not given) issue an operation; one that is not done keeps them waiting in it."""
        group = group or self.world
        for _ in range(times):
            self._clock_ns += _ISSUE_NS
            site = CallSite(tuple(self.at(op) if at is None else at))
            shape = () if op is Op.BARRIER else ((size,),)
            for rank in group.ranks if ranks is None else ranks:
                end = Operation(group, op, site, **{"input_sizes": shape, "output_sizes": shape, **operation})
                self._record(rank, Launch((end,)), is_done=is_done)
                if not is_done:
                    self.stand(rank, *site.frames)

    def meet(self, op: Op, came_s: Mapping[int, float], size: int = 4_194_304) -> None:
        """Lets ranks come to an operation of all, each so many seconds from now; it ends for all when the last has come."""
        end = Operation(self.world, op, CallSite(self.at(op)), input_sizes=((size,),), output_sizes=((size,),))
        done_ns = self._clock_ns + int(max(came_s.values()) * 10**9) + _RUN_NS
        for rank, seconds in came_s.items():
            self._launches.setdefault(rank, []).append((Launch((end,)), self._clock_ns + int(seconds * 10**9), done_ns))
        self._clock_ns = done_ns

    def transfer(self, rank: int, *ends: tuple[Op, int], is_done: bool = True, group: Group | None = None) -> None:
        """Sends and receives of one rank with these (global) peers: launched together, if there are several."""
        group = group or self.world
        at = self.at(ends[0][0], self.draw.own("exchange", "pipeline.py"))
        shape = ((2048, 5120),)
        operations = [Operation(group, op, CallSite(at), shape, shape, peer=group.group_rank(peer)) for op, peer in ends]
        self._clock_ns += _ISSUE_NS
        self._record(rank, Launch(tuple(operations), is_coalesced=len(ends) > 1), is_done=is_done)
        if not is_done:
            self.stand(rank, *at)

    def step(self, times: int = 3, ranks: Collection[int] | None = None) -> None:
        """What was well: a gradient's all_reduce and a loss's, on every rank."""
        for _ in range(times):
            self.issue(Op.ALL_REDUCE, 4_194_304, ranks=ranks)
            self.issue(Op.ALL_REDUCE, 2, ranks=ranks, at=self.at(Op.ALL_REDUCE, self.draw_once("reduce_loss")))

    def draw_once(self, name: str) -> Frame:
        """A function of the training code that stands at the same line every time."""
        return Draw(f"{self.draw.app}/{name}", self.draw.seed).own(name, "losses.py")

    def stand(
        self,
        rank: int,
        *frames: Frame,
        child: str = "",
        is_native: bool = False,
        is_active: bool = False,
        owns_gil: bool = False,
    ) -> None:
        """Where a rank's main thread (or that of a child of it) is, innermost first."""
        pid = self.pid(rank) + (10_000 if child else 0)
        thread = describe_thread(pid, pid, "MainThread", frames, is_active=is_active, owns_gil=owns_gil)
        form = child or ("native" if is_native else "")
        if form:
            thread["pardbg"] = {"child": child, "is_native": is_native}
        self._threads[rank, 0, form] = [thread]

    def thread(self, rank: int, name: str, *frames: Frame, owns_gil: bool = False) -> None:
        """A further thread of a rank that stands somewhere."""
        threads = self._threads[rank, 0, ""]
        threads.append(describe_thread(self.pid(rank), self.pid(rank) + len(threads), name, frames, owns_gil=owns_gil))

    def unseen(self, *ranks: int, dumps: bool = True, stacks: bool = True) -> None:
        """Nobody took these ranks' stacks, or their dumps are lost."""
        if dumps:
            self._lost.update(ranks)
        if stacks:
            self._threads = {key: threads for key, threads in self._threads.items() if key[0] not in ranks}

    def recorder_off(self, *ranks: int) -> None:
        """Their recorders were not switched on."""
        self._silent.update(ranks)

    def end(self, rank: int, exit_code: int | None = None, state: str = "gone") -> None:
        """What job.json says of a process. The dead leave neither dump nor stack."""
        self._processes[rank] = (state, exit_code)
        if state == "gone":
            self.unseen(rank)

    def look(self, rank: int, *, seconds_apart: float = 10.0, **after: Any) -> None:
        """Two looks at a rank's process, some seconds apart; ``after`` is what changed in between (differences of numbers)."""
        changed = {name: value + after.get(name, 0) for name, value in _FIRST_LOOK.items()}
        for sample, values in enumerate(({**_FIRST_LOOK, "still_s": 0.0}, {**changed, "still_s": seconds_apart})):
            self.see(rank, sample, state="S", system_call="futex", **values)
        self._threads[rank, 1, ""] = self._threads[rank, 0, ""]

    def see(self, rank: int, sample: int, **values: Any) -> None:
        """One look at a rank's process."""
        self._looks[rank, sample] = ProcessSample(sample=sample, pid=self.pid(rank), started_ticks=4_000 + rank, **values)

    def log(self, rank: int, text: str) -> None:
        """Adds to the log of one rank."""
        self.file(f"log_rank{rank}.txt", text)

    def nccl(self, rank: int, text: str, *, level: str = "INFO") -> None:
        """Has NCCL say something in a rank's log."""
        self.log(rank, nccl(self.host(rank), self.pid(rank), rank % 8, text, level=level))

    def nccl_comm(self, rank: int, what: str) -> None:
        """Has NCCL say that something of the communicator of all ranks starts or is complete."""
        self.log(rank, nccl_comm(self.host(rank), self.pid(rank), rank, len(self.ranks), what))

    def kernel(self, host: str, text: str) -> None:
        """Adds to the kernel log of a host."""
        self.file(f"kernel_{host}.log", text)

    def file(self, name: str, text: str) -> None:
        """Adds to any text file."""
        self._logs[name] = self._logs.get(name, "") + text

    def gpu(self, rank: int, *, util: int, power_w: int, mem_util: int = 0, seconds: int = 60, **more: float) -> None:
        """One minute of its GPU, which had worked before."""
        work: dict[str, float] = {"util": 98, "mem_util": 55, "power_w": 610}
        now: dict[str, float] = {"util": util, "mem_util": mem_util, "power_w": power_w, **more}
        points = [*([work] * _WORK_S), *([now] * seconds)]
        began_s = FIRST_STEP_NS // 10**9
        self._series[rank] = b"".join(
            json.dumps({"t": began_s + second, "rank": rank, **_CARD, **point}).encode() + b"\n"
            for second, point in enumerate(points)
        )

    def edit(self, rank: int, change: Edit) -> None:
        """Changes a rank's dump before it is written."""
        self._edits.setdefault(rank, []).append(change)

    @property
    def files(self) -> dict[str, bytes]:
        """Everything that is left."""
        return {
            **self._dumps(),
            **{_stack_name(*key): json.dumps(threads).encode() for key, threads in self._threads.items()},
            **{f"process_rank{rank}_s{sample}.json": _look(look) for (rank, sample), look in self._looks.items()},
            **{f"gpu_rank{rank}.jsonl": series for rank, series in self._series.items()},
            **{name: text.encode() for name, text in self._logs.items()},
            **({"job.json": self._description()} if self.has_job_file else {}),
        }

    def _record(self, rank: int, launch: Launch, *, is_done: bool) -> None:
        created_ns = self._clock_ns + rank * 7_919
        self._launches.setdefault(rank, []).append((launch, created_ns, created_ns + _RUN_NS if is_done else None))

    def _recorder(self, rank: int) -> Recorder:
        own = [group for group in self._groups if rank in group.ranks]
        numbers = {group: number for number, group in enumerate(own)}  # a process numbers its groups as they come
        recorder = Recorder(rank, numbers, is_nccl=self.backend == "nccl", has_frames=True)
        for launch in self._launches[rank]:
            recorder.record(*launch)
        return recorder

    def _dumps(self) -> dict[str, bytes]:
        recipe = Recipe(fault="casebook", ranks=len(self.ranks), backend=self.backend, dump_version="2.10")
        encode = encode_json if self.is_json else encode_pickle
        files = {}
        for rank in sorted(self._launches.keys() - self._lost):
            dump = whole_dump(recipe, self._recorder(rank), self.ring[rank])
            if rank in self._silent:
                dump = silent_dump(recipe)
            for change in self._edits.get(rank, ()):
                change(dump)
            files[self.dump_name(rank=rank, host=self.host(rank))] = encode(_without_frames(dump) if self.is_json else dump)
        return files

    def _description(self) -> bytes:
        ranks = [self._describe(rank) for rank in self.ranks]
        return json.dumps({"job": "casebook", "world_size": len(self.ranks), "ranks": ranks}).encode()

    def _describe(self, rank: int) -> Mapping[str, Any]:
        state, exit_code = self._processes.get(rank, ("S", None))
        return {
            "rank": rank,
            "host": self.host(rank),
            "pid": self.pid(rank),
            "local_rank": rank % self._per_host,
            "pci_bus_id": self.pci(rank) if self.backend == "nccl" else None,
            "process": {"state": state, "exit_code": exit_code},
        }


_FIRST_LOOK = {"moved_bytes": 10**9, "cpu_s": 900.0, "voluntary_switches": 52_000}
_CARD = {"power_limit_w": 700, "sm_clock_mhz": 1980, "temperature_c": 45, "clock_reasons": 0}


def _stack_name(rank: int, sample: int, form: str) -> str:
    return f"stack_{f'{form}_' if form else ''}rank{rank}_s{sample}.json"


def _look(sample: ProcessSample) -> bytes:
    return msgspec.json.encode({"schema": "pardbg.process/1", "process": sample})


def _without_frames(dump: Dump) -> Dump:
    return {**dump, "entries": [{**entry, "frames": []} for entry in dump["entries"]]}
