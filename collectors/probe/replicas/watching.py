"""One replica that this process holds in a DistributedDataParallel, and when it is looked at.

DDP promises that replicas are equal whenever a pass begins that it will synchronise, whatever the optimizer does in between.
So there the weights are looked at, in the first such pass after a step of `replica_format.is_due`: a step by the page's count.
How many passes there were is kept with it, since programs that differ in it cannot be compared.

Not looked at: what is in a graph of CUDA; DDP with a hook that may leave replicas unequal for a while, or with steps of which
no pass was synchronised, as in local SGD; and any other module but the first that trains, until that is gone. Cost: 1 us a
pass, and 1 ms every 64th step.
"""

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import torch

from .. import replica_format as form
from ..harmless import harmless
from ..page import Page
from ..page_format import ReplicaRecord
from ..routing.copying import Copier
from ..steps import Ledger
from .keeping import Keeper
from .tasting import digest, taste
from .weighing import Cut, find_cut, find_fitting, spread, take, weigh

EXACT_HOOKS = frozenset({"allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "_reducer_allreduce_and_upcast_hook"})
"""Communication hooks of DDP after which all replicas hold the same gradient in every step."""


class _Look(NamedTuple):
    step: int
    forward: int
    form: int
    told: tuple[int, int] | None  # of data on the host; else the last two sums are it
    has_told: bool


class Replicas:
    """What one process looks at. Open from `start` on, in the process that called it."""

    def __init__(self) -> None:
        self._here: Sequence[int] = ()
        self._ledger = Ledger()
        self._read_step: Callable[[], int] = int
        self._keeper: Keeper | None = None
        self._copier = Copier()
        self._known: Callable[[], Any] = _nothing
        self._places: list[int] = []
        self._cuts: list[Cut] = []
        self._ordinal = self._forward = 0
        self._last_step = self._loose_step = -1
        self._look = harmless(self._take)

    def start(self, page: Page, ledger: Ledger, here: Sequence[int]) -> None:
        """Looks from now on. ``here`` is empty in a forked child."""
        self._ledger, self._here, self._read_step = ledger, here, page.step_reader()
        self._keeper = Keeper(lambda body: page.write(ReplicaRecord, body))
        self._known, self._places = _nothing, []
        self._copier = Copier()

    def see_pass(self, ddp: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A pass of a DistributedDataParallel begins."""
        if not self._here or not torch.is_grad_enabled():
            return
        if not ddp.require_backward_grad_sync:
            if self._known() is ddp:
                self._loose_step = self._read_step()
            return
        if self._known() is not ddp:
            if self._known() is not None:
                return
            self._meet(ddp)
        self._forward += 1
        if self._copier.is_waiting:
            self._publish()
        step = self._read_step()
        if 0 <= self._loose_step < step:
            self._give_up()
        self._loose_step = -1
        if step == self._last_step or not form.is_due(step):
            return
        self._last_step = step
        if self._places:
            began_ns = time.perf_counter_ns()
            self._look(ddp, step, arguments, named)
            self._ledger.charge(began_ns)

    def _meet(self, ddp: Any) -> None:
        """Another module is looked at from now on, if it can be."""
        self._known = weakref.ref(ddp)
        self._ordinal += 1
        self._forward, self._last_step, self._loose_step, self._places = 0, -1, -1, []
        self._copier = Copier()
        members = sorted(torch.distributed.get_process_group_ranks(ddp.process_group))
        parameters = ddp._module_parameters  # noqa: SLF001 - those that it keeps equal, and no others
        fitting = find_fitting(parameters)
        places = spread(fitting, form.MOST_PARTS)
        if self._keeper is None or len(members) < 2 or not places or not _keeps_equal(ddp):
            return
        cuts = [find_cut(parameters[place]) for place in places]
        self._keeper.begin(
            form.Head(
                self._ordinal,
                crc32(",".join(map(str, members)).encode()) or 1,
                len(members),
                len(fitting),
                len(places),
                sum(int(take(parameters[place], cut).numel()) for place, cut in zip(places, cuts, strict=True)),
                sum(int(parameters[place].numel()) for place in fitting),
            )
        )
        self._places, self._cuts = places, cuts

    def _take(self, ddp: Any, step: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not _keeps_equal(ddp):
            self._give_up()
            return
        if _is_capturing() or torch._C._len_torch_dispatch_stack():  # noqa: SLF001 - somebody counts all operations
            return
        parameters = ddp._module_parameters  # noqa: SLF001
        with torch.no_grad(), torch._C.DisableTorchFunction():  # noqa: SLF001
            sums = weigh([parameters[place] for place in self._places], self._cuts)
            tasted = None if ddp.parameters_to_ignore else taste(arguments, named)  # with parts of their own ranks may share it
            told, has_told = None, False
            if tasted is not None and tasted.told.device == sums.device:
                sums, has_told = torch.cat([sums, tasted.told]), True
            elif tasted is not None and tasted.told.device.type == "cpu":
                hashed, changes = tasted.told.tolist()
                told = hashed, changes
            self._copier.send(sums, _Look(step, self._forward, tasted.form if tasted else 0, told, has_told))
        self._publish()

    def _give_up(self) -> None:
        """Its replicas need not be equal."""
        if self._places and self._keeper is not None:
            self._keeper.begin(form.NOTHING)
        self._places, self._copier = [], Copier()

    def _publish(self) -> None:
        """Keeps what has arrived from the device."""
        for found in self._copier.finished():
            look, sums = found.note, found.rows.tolist()
            told = look.told
            if look.has_told:
                *sums, hashed, changes = sums
                told = hashed, changes
            if self._keeper is not None:
                self._keeper.keep(look.step, look.forward, sums, digest(told, look.form) if told else 0)


def _keeps_equal(ddp: Any) -> bool:
    if getattr(ddp, "_delay_all_reduce_all_params", False):
        return False
    return all(getattr(hook, "__name__", "") in EXACT_HOOKS for hook, _ in ddp._comm_hooks)  # noqa: SLF001


def _is_capturing() -> bool:
    return torch.cuda.is_initialized() and bool(torch.cuda.is_current_stream_capturing())  # type: ignore[no-untyped-call]


def _nothing() -> None:
    """For what is not there yet."""
