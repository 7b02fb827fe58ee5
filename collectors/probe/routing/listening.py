"""The hook of one router, in which its answers are heard: in training only, and each answer once.

A pass counts if it will be learnt from. Where activations are recomputed, the pass is run twice: the second one happens while a
graph is being walked backwards, and counts only if the first one was run without gradients (the reentrant kind). Evaluations
count nothing. Within a compiled graph the hook becomes one operation (`compiled.py`), which decides the same when it is run.
"""

import contextlib
import time
from typing import Any, Protocol

import torch

from ..harmless import harmless
from .asking import choose
from .layer import Layer
from .reading import NEWER_GATE, Choice, read_choice, tensors_of
from .recognising import LAYER_OF_TUTEL, Traits

_MOST_FAILURES = 5
ASKED = -1
"""A compiled graph tells the logits of the router with key n under `ASKED` - n."""


class Listener(Protocol):
    """Whoever keeps the layers."""

    step: int
    is_sampled: bool

    @property
    def is_open(self) -> bool:
        """Whether anything is counted."""

    def find_layer(self, hook: "RouterHook", module: Any) -> Layer | None:
        """The layer of a router that has answered for the first time."""

    def make_room(self, experts: int) -> None:
        """Makes all rows wide enough."""

    def charge(self, began_ns: int) -> None:
        """Adds the time since then to the probe's own."""


class RouterHook:
    """What a router's answers are given to. A copy of the module gets a hook of its own; a pickle of it holds none of ours."""

    is_of_pardbg = True

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.layer: Layer | None = None
        self.traits: Traits | None = None
        self.key = -1
        self.row: torch.Tensor | None = None
        self.asked: torch.Tensor | None = None
        self._failures = 0
        self._length = self._place = -1
        self._last = (-1,)
        self._hear, self.note_asked = harmless(self.hear), harmless(self._choose)

    def __call__(self, module: Any, args: Any, answer: Any) -> None:
        """Torch calls it after each pass of the module."""
        if torch.compiler.is_compiling():
            row = self.row
            if row is not None and module.training and torch.is_grad_enabled():
                parts = answer if isinstance(answer, tuple | list) else (answer,)
                tensors = [part.detach() for part in parts if isinstance(part, torch.Tensor)]
                torch.ops.pardbg.count_routing(row, tensors, self.key, _capacity_in(parts))
            return
        if module.training and self.listener.is_open and self._failures < _MOST_FAILURES and not torch._C._is_tracing():  # noqa: SLF001
            began_ns = time.perf_counter_ns()
            self._failures += 1
            if self._hear(module, args, answer):
                self._failures = 0
            self.listener.charge(began_ns)

    def ask(self, module: Any, logits: Any) -> None:
        """Hears the logits of a router with a capacity before it answers (`asking.py`); None if they do not tell all."""
        if torch.compiler.is_compiling():
            row = self.row
            if row is not None and logits is not None and module.training and torch.is_grad_enabled():
                torch.ops.pardbg.count_routing(row, [logits.detach()], ASKED - self.key, 0)
            return
        self.asked = None
        if logits is not None and module.training and torch.is_grad_enabled() and self.listener.is_open:
            began_ns = time.perf_counter_ns()
            self.note_asked(logits, module)
            self.listener.charge(began_ns)

    def _choose(self, logits: torch.Tensor, module: Any = None) -> None:
        """Keeps the choices, not the logits: their memory may be used again before the answer comes."""
        if module is not None:
            self.find_layer(module)
        if self.traits is not None:
            with _unseen():
                self.asked = choose(logits, self.traits)

    def __deepcopy__(self, _memo: dict[int, Any]) -> "RouterHook":
        return RouterHook(self.listener)

    def __reduce__(self) -> tuple[Any, ...]:
        """A model that is pickled as a whole is read where there is no probe: there the hook is a method that does nothing."""
        return getattr, (contextlib.nullcontext(), "__exit__")

    def hear(self, module: Any, args: Any, answer: Any) -> bool:
        """Counts an answer. False: it was not understood."""
        layer = self.find_layer(module)
        if layer is None or self.traits is None:
            return False
        if not self.is_first(layer):
            self.asked = None
            return True
        if self.traits.kind == LAYER_OF_TUTEL:
            rows = args[0].numel() // args[0].shape[-1]
            return self.count([getattr(module, "dispatch_count", None), getattr(module, "l_aux", None), rows])
        is_watched = torch._C._len_torch_dispatch_stack() > 0  # noqa: SLF001 - see `_unseen`
        if type(answer) is tuple and len(answer) == self._length and not self.listener.is_sampled and not is_watched:
            ids, row = answer[self._place], layer.row
            if type(ids) is torch.Tensor and ids.shape[-1:] == self._last and row is not None and row.device == ids.device:
                layer.add_ids(ids)
                return True
        with _unseen():
            return self.count(tensors_of(answer))

    def find_layer(self, module: Any) -> Layer | None:
        """The layer of this router."""
        if self.layer is None or self.traits is None:
            self.layer = self.listener.find_layer(self, module)
        return self.layer

    def is_first(self, layer: Layer) -> bool:
        """Whether this pass is the one to count."""
        if torch._C._current_graph_task_id() < 0:  # noqa: SLF001 - the only thing that tells a recomputation
            if torch.is_grad_enabled():
                layer.direct_step = self.listener.step
                return True
            return False
        return torch.is_grad_enabled() and layer.direct_step != self.listener.step

    def count(self, parts: list[Any], into: torch.Tensor | None = None) -> bool:
        """Adds one answer to the layer, or to a stand-in of its row that a compiler has made."""
        layer, traits = self.layer, self.traits
        if layer is None or traits is None:
            return False
        asked, self.asked = self.asked, None
        choice = read_choice(parts, traits, asked)
        if choice is None:
            return False
        tensor = choice.ids if choice.ids is not None else choice.counts
        if into is None and tensor is not None:
            device = choice.logits.device if choice.logits is not None else tensor.device
            into = layer.row if layer.row is not None and layer.row.device == device else layer.place(device)
            self.row = into
        if into is None or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return False
        if not layer.has_room(choice.experts):
            self.listener.make_room(choice.experts)
            into = self.row = layer.place(into.device)
        layer.add(into, choice, is_sampled=self.listener.is_sampled)
        self._remember(parts, choice)
        return True

    def _remember(self, parts: list[Any], choice: Choice) -> None:
        """Where the choices stand in an answer, if there is nothing else to look at: the next one will be the same."""
        self._length = -1
        place = next((place for place, part in enumerate(parts) if choice.ids is not None and _is_same(part, choice.ids)), -1)
        if place >= 0 and choice.capacity is None and choice.aux_loss is None:
            self._length, self._place, self._last = len(parts), place, (choice.top_k,)


def _capacity_in(parts: Any) -> Any:
    """What DeepSpeed's newer gate says in numbers, which an operation is not given among tensors; 0: nothing."""
    return parts[1] if len(parts) == NEWER_GATE and isinstance(parts[1], int | torch.SymInt) else 0


def _unseen() -> contextlib.AbstractContextManager[Any]:
    """Whoever watches the model's operations is not shown ours."""
    is_watched = torch._C._len_torch_dispatch_stack() > 0  # noqa: SLF001
    return torch._C._DisableTorchDispatch() if is_watched else contextlib.nullcontext()  # noqa: SLF001


def _is_same(part: Any, ids: torch.Tensor) -> bool:
    return (
        type(part) is torch.Tensor and part.dtype == ids.dtype and part.data_ptr() == ids.data_ptr() and part.shape == ids.shape
    )
