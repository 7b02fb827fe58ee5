"""What a training program reports of its own routing, for frameworks that the probe does not know. `pardbg.probe` offers it.

Cost: that of a router's hook, or a look at a list where there is no probe.
"""

import time
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from ..harmless import harmless, note, problems
from .layer import LOSS, Layer
from .reading import Choice
from .watching import Routers

IN_COMPILED = "report_routing: called within compiled code, where it reports nothing: call it outside of what is compiled"

routers: list[Routers] = []
"""That of this process, once there is one."""


def report_routing(key: int | str, **said: Any) -> None:
    """See `pardbg.probe.report_routing`."""
    if torch.compiler.is_compiling():
        _tell_once()
    elif routers and routers[0].is_open:
        began_ns = time.perf_counter_ns()
        harmless(_report)(routers[0], key, **said)
        routers[0].charge(began_ns)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _tell_once() -> None:
    """Run by the compiler while it traces."""
    if IN_COMPILED not in problems:
        note(IN_COMPILED)


def report_loss(loss: Any) -> None:
    """See `pardbg.probe.report_loss`."""
    if torch.compiler.is_compiling():
        _tell_once()
    elif routers and routers[0].is_open and routers[0].layers:
        harmless(_add_loss)(routers[0].layers[0], loss)


def _report(
    own: Routers, key: int | str, *, loss: Any = None, ep_size: int | None = None, router: Any = None, **said: Any
) -> None:
    choice = _read(**said)
    layer = own.find_reported(key)
    if router is not None and layer.module() is not router:
        layer.module, layer.is_moved = weakref.ref(router), False
    if _is_first(own, layer):
        own.make_room(choice.experts)
        tensor = choice.ids if choice.ids is not None else choice.counts
        if tensor is not None:
            layer.ep_size = ep_size or layer.ep_size
            layer.add(layer.place(tensor.device), choice, is_sampled=own.is_sampled)
    if loss is not None:
        _add_loss(own.layers[0], loss)


def _is_first(own: Routers, layer: Layer) -> bool:
    """As in `listening.py`, but the program may report without gradients, e.g. after the pass: that counts."""
    if torch._C._current_graph_task_id() < 0:  # noqa: SLF001
        layer.direct_step = own.step
        return True
    return layer.direct_step != own.step


def _read(  # noqa: PLR0913 - what a program may say
    *,
    counts: Any = None,
    experts: Any = None,
    num_experts: int | None = None,
    kept: Any = None,
    dropped: Any = None,
    capacity: float | None = None,
    top_k: int | None = None,
    tokens: int | None = None,
    logits: Any = None,
    aux_loss: Any = None,
) -> Choice:
    ids = None if experts is None else _tensor(experts)
    wanted = _tensor(counts).reshape(-1) if ids is None and counts is not None else None
    width = wanted.numel() if wanted is not None else int(num_experts or (logits.shape[-1] if logits is not None else 0))
    if ids is not None and width <= 0:
        raise ValueError("report_routing: num_experts is missing: ids alone do not say how many experts there are")
    chosen = top_k or (ids.shape[-1] if ids is not None and ids.dim() > 1 else 1 if ids is not None else 0)
    rows = tokens if tokens is not None else ids.numel() // chosen if ids is not None else 0
    lost = dropped
    if kept is not None and getattr(kept, "dtype", None) == torch.bool:
        lost = kept.numel() - kept.sum()
    elif kept is not None:
        lost = (wanted.sum() if wanted is not None else ids.numel() if ids is not None else 0) - kept
    source = ids if ids is not None else wanted
    return Choice(
        experts=width,
        tokens=rows,
        top_k=chosen,
        ids=ids,
        counts=wanted,
        dropped=None if lost is None or source is None else torch.as_tensor(lost, device=source.device),
        knows_drops=lost is not None,
        capacity=capacity,
        logits=logits.detach() if logits is not None else None,
        aux_loss=None if aux_loss is None else torch.as_tensor(aux_loss).detach(),
    )


def _tensor(said: Sequence[Any] | torch.Tensor) -> torch.Tensor:
    return said.detach() if isinstance(said, torch.Tensor) else torch.tensor(said)


def _add_loss(layer: Layer, loss: Any) -> None:
    """Where nothing has run yet there is no row: the loss of the first pass comes after it."""
    if layer.row is not None:
        layer.row[LOSS].add_(loss.detach().reshape(()) if isinstance(loss, torch.Tensor) else float(loss))
        layer.seen.with_loss += 1
