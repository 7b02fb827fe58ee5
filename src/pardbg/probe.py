"""`import pardbg.probe` in a training program: what `pardbg run` does from outside, for those who prefer it in the code.

Before or after torch is imported, but before the first process group is made. It does nothing in a process without RANK. What
only the environment can switch on - the size of the flight recorder - is left as it is.

`report_routing` and `report_loss` are for routers of a mixture of experts that the probe does not find by itself.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    Numbers = torch.Tensor | Sequence[int]
    Number = torch.Tensor | float

_NAME = "_pardbg_probe"


def _load() -> None:
    """Loads the one package that `pardbg run` would have loaded, by the same name: twice it must not be there."""
    if _NAME not in sys.modules:
        folder = Path(__file__).resolve().parent / "collectors" / "probe"
        spec = importlib.util.spec_from_file_location(_NAME, folder / "__init__.py", submodule_search_locations=[str(folder)])
        if spec is None or spec.loader is None:
            return
        sys.modules[_NAME] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    importlib.import_module(f"{_NAME}.start").arm()


def report_routing(  # noqa: PLR0913 - all but the layer by name
    layer: int | str,
    *,
    counts: "Numbers | None" = None,
    experts: "Numbers | Sequence[Sequence[int]] | None" = None,
    num_experts: int | None = None,
    kept: "Number | None" = None,
    dropped: "Number | None" = None,
    capacity: float | None = None,
    top_k: int | None = None,
    tokens: int | None = None,
    logits: "torch.Tensor | None" = None,
    aux_loss: "Number | None" = None,
    ep_size: int | None = None,
    router: "torch.nn.Module | torch.Tensor | None" = None,
    loss: "Number | None" = None,
) -> None:
    """Reports how one layer has routed one micro-batch. What is reported until the next optimizer step is added up.

    Tensors stay on their device, and it is not waited for. Never raises: what is wrong is noted in the rank's folder. Does
    nothing where there is no probe. Within compiled code it does nothing either, and says so once there: call it outside. Cost:
    some 20 us, in every eighth step with ``logits`` some 250 us (512 tokens, 8 experts, on a CPU); two to five times that where
    training has emptied the processor's caches; a step that ends, 70 us.

    Args:
        layer: its number, or its qualified name.
        counts: assignments to each expert before drops; or
        experts: the chosen experts of each token, [tokens, k], and ``num_experts``, if ``logits`` do not tell it.
        num_experts: how many experts there are.
        kept: which assignments were kept, [tokens, k] booleans, or how many.
        dropped: how many were dropped, instead.
        capacity: assignments that one expert takes of this micro-batch.
        top_k: experts a token, where ``experts`` do not tell it.
        tokens: tokens that were routed, likewise.
        logits: of the router, [tokens, experts]; looked at in every eighth step only.
        aux_loss: balancing loss of this layer alone, 1.0 where the load is uniform.
        ep_size: ranks that share the experts.
        router: the module, or its weight, that makes the logits: its gradient is looked at after each step.
        loss: training loss, as `report_loss`.
    """
    reporting = sys.modules.get(f"{_NAME}.routing.reporting")
    if reporting is not None:
        said = {name: value for name, value in locals().items() if name not in {"layer", "reporting"} and value is not None}
        reporting.report_routing(layer, **said)


def report_loss(loss: "Number") -> None:
    """Reports the training loss of one micro-batch, after a router has run in the step: the mean of a step is kept."""
    reporting = sys.modules.get(f"{_NAME}.routing.reporting")
    if reporting is not None:
        reporting.report_loss(loss)


_load()
