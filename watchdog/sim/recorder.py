"""One rank's flight recorder: turns launches into entries as the back end's recorder writes them."""

from typing import Any

from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.sim.instruction import CallSite, Launch, Op, Operation
from pardbg.watchdog.sim.layout import Group

Entry = dict[str, Any]

_NCCL_NAMES = {Op.ALL_GATHER: "_all_gather_base", Op.REDUCE_SCATTER: "_reduce_scatter_base", Op.BARRIER: "all_reduce_barrier"}
_GLOO_NAMES = {Op.REDUCE_SCATTER: "all_reduce"}
_TIMEOUTS_MS = {"nccl": 600_000, "gloo": 1_800_000}
_POLL_NS = 100_000_000  # the NCCL watchdog looks every 100 ms; completion is discovered then
_THREAD_NAME = "pt_main_thread"
_THREAD_ID = 139_674_295_085_952


class Recorder:
    """Records launches in order. ``first_record_id`` and the counters start where the unrecorded past left them."""

    def __init__(self, rank: int, local_ids: dict[Group, int], *, is_nccl: bool, has_frames: bool) -> None:
        self.entries: list[Entry] = []
        self.used_groups: dict[Group, None] = {}
        self._rank = rank
        self._local_ids = local_ids
        self._backend = "nccl" if is_nccl else "gloo"
        self._is_nccl = is_nccl
        self._has_frames = has_frames
        self._record_id = 0
        self._seqs: dict[Group, int] = dict.fromkeys(local_ids, 0)
        self._p2p_seqs = self._seqs.copy()
        self._op_ids = self._seqs.copy()
        self._enqueued: dict[Group, int] = {}
        self._completed: dict[Group, int] = {}
        self._prototypes: dict[Operation, Entry] = {}
        self._frame_dicts: dict[Frame, dict[str, Any]] = {}
        self._frame_lists: dict[CallSite, list[dict[str, Any]]] = {}

    def skip(self, launches: list[Launch], times: int) -> None:
        """Counts launches of the past that the ring no longer holds; all of them completed."""
        for launch in launches:
            group = launch.first.group
            self.used_groups[group] = None
            is_p2p = launch.first.op.is_p2p
            self._op_ids[group] += times * len(launch.operations)
            if self._is_nccl or not is_p2p:
                self._record_id += times * (len(launch.operations) + launch.is_coalesced)
            (self._p2p_seqs if is_p2p else self._seqs)[group] += times
            self._note(group, is_p2p=is_p2p, is_done=True)

    def record(self, launch: Launch, created_ns: int, completed_ns: int | None) -> None:
        """Records one launch; times are epoch ns."""
        group, is_p2p = launch.first.group, launch.first.op.is_p2p
        self.used_groups[group] = None
        (self._p2p_seqs if is_p2p else self._seqs)[group] += 1
        for operation in launch.operations:
            self._op_ids[group] += 1
            if self._is_nccl or not is_p2p:
                is_member = launch.is_coalesced  # its state is never updated: the closing entry has it
                self._append(self._prototype(operation), group, created_ns, None if is_member else completed_ns)
        if launch.is_coalesced and self._is_nccl:
            self._append(self._closing(launch), group, created_ns, completed_ns)
        self._note(group, is_p2p=is_p2p, is_done=completed_ns is not None)

    def progress(self) -> dict[str, dict[str, int]]:
        """``pg_status``: the counters by the process's own group numbers."""
        return {
            str(self._local_ids[group]): {
                "last_enqueued_collective": self._enqueued.get(group, -1),
                "last_started_collective": -1,
                "last_completed_collective": self._completed.get(group, -1),
            }
            for group in sorted(self._enqueued, key=self._local_ids.__getitem__)
        }

    def _note(self, group: Group, *, is_p2p: bool, is_done: bool) -> None:
        """NCCL notes the sequence number of the last work, of whichever kind.

        gloo notes nothing when it sends or receives; its number of the next collective shows that it did.
        """
        if is_p2p and not self._is_nccl:
            return
        number = (self._p2p_seqs if is_p2p else self._seqs)[group] if self._is_nccl else self._op_ids[group]
        self._enqueued[group] = number
        if is_done:
            self._completed[group] = number

    def _append(self, prototype: Entry, group: Group, created_ns: int, completed_ns: int | None) -> None:
        entry = prototype.copy()
        if self._has_frames:
            entry["frames"] = prototype["frames"].copy()
        entry["record_id"] = self._record_id
        entry["collective_seq_id"] = self._seqs[group]
        entry["p2p_seq_id"] = self._p2p_seqs[group]
        entry["op_id"] = self._op_ids[group]
        entry["time_created_ns"] = created_ns
        if completed_ns is not None:
            entry["retired"] = True
            if self._is_nccl:
                entry["state"] = "completed"
                entry["time_discovered_completed_ns"] = (completed_ns // _POLL_NS + 1) * _POLL_NS + self._rank * 977
        self.entries.append(entry)
        self._record_id += 1

    def _prototype(self, operation: Operation) -> Entry:
        if operation not in self._prototypes:
            sizes = [[list(shape) for shape in shapes] for shapes in (operation.input_sizes, operation.output_sizes)]
            if self._is_nccl and operation.op is Op.BARRIER:
                sizes = [[[1]], [[1]]]  # NCCL has no barrier: it reduces one number
            self._prototypes[operation] = self._entry(operation, self._name(operation), sizes, operation.dtype)
        return self._prototypes[operation]

    def _closing(self, launch: Launch) -> Entry:
        return self._entry(launch.first, "coalesced", [[], []], None)

    def _entry(self, operation: Operation, name: str, sizes: list[list[list[int]]], dtype: str | None) -> Entry:
        frames = {"frames": self._frames(operation.site)} if self._has_frames else {}
        group = operation.group
        return {
            **frames,
            "record_id": 0,
            "pg_id": self._local_ids[group],
            "process_group": (group.name, group.description),
            "thread_name": _THREAD_NAME,
            "thread_id": str(_THREAD_ID + 4096 * self._rank),
            "collective_seq_id": 0,
            "p2p_seq_id": 0,
            "op_id": 0,
            "profiling_name": f"{self._backend}:{name}",
            "time_created_ns": 0,
            "input_sizes": sizes[0],
            "input_dtypes": [dtype for _ in sizes[0]],
            "output_sizes": sizes[1],
            "output_dtypes": [dtype for _ in sizes[1]],
            "state": "scheduled",
            "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None,
            "retired": False,
            "timeout_ms": _TIMEOUTS_MS[self._backend],
            "is_p2p": operation.op.is_p2p and dtype is not None,
        }

    def _name(self, operation: Operation) -> str:
        if operation.op.is_p2p:
            arrow = "->" if operation.op is Op.SEND else "<-"
            return f"{operation.op.value} {operation.group.group_rank(self._rank)}{arrow}{operation.peer}"
        return (_NCCL_NAMES if self._is_nccl else _GLOO_NAMES).get(operation.op, operation.op.value)

    def _frames(self, site: CallSite) -> list[dict[str, Any]]:
        """Recorders share the frame dicts of equal frames between entries."""
        if site not in self._frame_lists:
            self._frame_lists[site] = [
                self._frame_dicts.setdefault(frame, {"name": frame.name, "filename": frame.filename, "line": frame.line})
                for frame in site.frames
            ]
        return self._frame_lists[site]
