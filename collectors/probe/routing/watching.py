"""All routers of one process: found when they are put into their model, counted in each pass, published after each step.

What it does to training: a hook on each router, and one on the making of modules; none on all modules, which would slow down
every one of them.
"""

import gc
import itertools
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..harmless import harmless
from ..steps import Ledger
from .asking import find_hook, listen_to_logits
from .compiled import define_operation
from .layer import FIRST, SAMPLED_EVERY, Layer, cells_for
from .lineage import Lineage, number_layers, strip_name
from .listening import ASKED, RouterHook
from .publishing import Publisher
from .reading import with_capacity
from .recognising import find_weight, is_router, read_traits

_LEAST_EXPERTS = 64
COMPILED = "_orig_mod"
"""Under this name `torch.compile` puts a module into its own."""


class Routers:
    """The routers, and the layers that have answered. Open from `start` on, in the process that called it."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.step = 0
        self.is_sampled = True
        self._hooks: list[RouterHook] = []
        self._found: list[tuple[Any, RouterHook]] = []
        self._lineage = Lineage()
        self._reported: dict[int | str, Layer] = {}
        self._width = FIRST + cells_for(_LEAST_EXPERTS)
        self._here: Sequence[int] = ()
        self._ledger = Ledger()
        self._publisher: Publisher | None = None
        self._operation: torch.library.Library | None = None

    @property
    def is_open(self) -> bool:
        """Whether anything is counted: in a forked child nothing is."""
        return bool(self._here)

    def start(self, path: str, ledger: Ledger, here: Sequence[int]) -> None:
        """Counts from now on. ``here`` is empty in a forked child."""
        self._ledger, self._here, self._publisher = ledger, here, Publisher(path)
        if self._operation is None:
            self._operation = define_operation(harmless(self.count_compiled))

    def make_hook(self) -> Callable[[Any, str, Any], None]:
        """The function that torch calls when a module is put into another.

        Compiled code may do that, too: a part of a list of layers is a new list. It must find nothing of ours to compile.
        """
        see = harmless(self.see_module)

        def after_registration(parent: Any, name: str, module: Any) -> None:
            if not torch.compiler.is_compiling():
                see(parent, name, module)

        return after_registration

    def close(self) -> None:
        """Takes the operation back, so that others can make theirs: for tests."""
        if self._operation is not None:
            self._operation._destroy()  # type: ignore[no-untyped-call]  # noqa: SLF001 - there is no other way
            self._operation = None

    def see_module(self, parent: Any, name: str, module: Any) -> None:
        """A module was put into another."""
        if module is None:
            return
        self._lineage.note(parent, module)
        if name == COMPILED:  # the compiler's own word may not reach us: `torch._dynamo.reset` forgets who listens
            self.prepare()
        if is_router(parent, name, module) and find_hook(module) is None:
            listen_to_logits(module)
            hook = RouterHook(self)
            module.register_forward_hook(hook)
            self._found.append((weakref.ref(module), hook))

    def find_made(self) -> None:
        """Sees the modules that were made before anybody listened: all objects are looked through once."""
        is_module: dict[type, bool] = {}
        made = []
        for thing in gc.get_objects():
            kind = type(thing)
            known = is_module.get(kind)
            if known is None:
                known = is_module[kind] = issubclass(kind, torch.nn.Module)
            if known:
                made.append(thing)
        for parent in made:
            for name, module in list(parent._modules.items()):  # noqa: SLF001 - by their names, without a generator
                self.see_module(parent, name, module)

    def find_layer(self, hook: RouterHook, module: Any) -> Layer | None:
        """Makes layers for all routers of the model at once, in the order in which they stand in it."""
        root = self._lineage.root_of(module)
        found = [(strip_name(name), part, own) for name, part in root.named_modules() if (own := find_hook(part)) is not None]
        found = [item for item in found if item[2].layer is None]
        if all(own is not hook for _, _, own in found):
            found.append((type(module).__name__, module, hook))
        told = [_own_number(part) for _, part, _ in found]
        numbers = number_layers([name for name, _, _ in found], told, [layer.number for layer in self.layers])
        taken = {layer.name for layer in self.layers}
        for number, (name, part, own) in zip(numbers, found, strict=True):
            self._add(number, _tell_apart(name, taken), part, own)
        return hook.layer

    def make_room(self, experts: int) -> None:
        """Makes all rows wide enough."""
        width = FIRST + cells_for(experts)
        if width > self._width:
            self._width = width
            for layer in self.layers:
                layer.widen(width)
            for hook in self._hooks:
                hook.row = hook.layer.row if hook.row is not None and hook.layer is not None else None

    def find_reported(self, key: int | str) -> Layer:
        """The layer that a program reports itself by this number or name."""
        layer = self._reported.get(key)
        if layer is None:
            name = key if isinstance(key, str) else ""
            taken = [other.number for other in self.layers]
            number = number_layers([name], [None if name else int(key)], taken)[0]
            layer = self._reported[key] = Layer(number, name, self._width)
            self.layers.append(layer)
        return layer

    def charge(self, began_ns: int) -> None:
        """Adds the time since then to the probe's own."""
        self._ledger.charge(began_ns)

    def count_compiled(self, row: torch.Tensor, said: Sequence[torch.Tensor], key: int, capacity: int) -> None:
        """A compiled graph has come to the place of a router's hook. ``capacity``: 0 if the router says none in its answer."""
        began_ns = time.perf_counter_ns()
        hook = self._hooks[key if key >= 0 else ASKED - key]
        layer = hook.layer
        if key < 0:
            hook.note_asked(said[0])
        elif self.is_open and layer is not None:
            if said and said[0].device != row.device:  # the model was moved: it is compiled anew, with another row
                hook.row = layer.place(said[0].device)
                return
            is_again = torch._C._current_graph_task_id() >= 0  # noqa: SLF001 - as in `listening.py`
            if not is_again:
                layer.direct_step = self.step
            if not is_again or layer.direct_step != self.step:
                hook.count(with_capacity(said, capacity), row)
        self.charge(began_ns)

    def note_step(self, optimizer: Any) -> None:
        """An optimizer has stepped: of the routers that it moves the gradients are there."""
        if self._publisher is not None and self.is_open and not _is_capturing():
            self._publisher.note_step(optimizer, self.layers, self._lineage)

    def end_step(self, step: int, ended_ns: int) -> None:
        """A step has ended: its sums go on their way, and those that have arrived are published."""
        if self._publisher is None or not self.is_open or _is_capturing():
            return
        self._publisher.publish(self.layers, step, ended_ns)
        self.step = step
        self.is_sampled = step % SAMPLED_EVERY == 0

    def prepare(self) -> None:
        """Gives a layer and a row to each router that has none, as far as it is known where it will run."""
        if not self.is_open:
            return
        self._found = [item for item in self._found if item[0]() is not None]
        for reference, hook in self._found:
            module = reference()
            layer = hook.layer or self.find_layer(hook, module)
            weight = find_weight(module)
            if layer is not None and layer.row is None and weight is not None and weight.device.type != "meta":
                layer.place(weight.device)
            hook.row = layer.row if layer is not None else None

    def _add(self, number: int, name: str, module: Any, hook: RouterHook) -> None:
        traits = read_traits(module, self._lineage.parent_of(module))
        self.make_room(traits.experts)
        layer = Layer(number, name, self._width)
        layer.experts, layer.top_k, layer.ep_size = traits.experts, traits.top_k, traits.ep_size
        layer.module = weakref.ref(module)
        hook.layer, hook.traits, hook.key = layer, traits, len(self._hooks)
        self._hooks.append(hook)
        self.layers.append(layer)


def _is_capturing() -> bool:
    return torch.cuda.is_initialized() and bool(torch.cuda.is_current_stream_capturing())  # type: ignore[no-untyped-call]


def _tell_apart(name: str, taken: set[str]) -> str:
    """The name, with a number where a second model has one of the same."""
    if not name or name not in taken:
        return name
    return next(told for number in itertools.count(2) if (told := f"{name} #{number}") not in taken)


def _own_number(module: Any) -> int | None:
    """Megatron's routers count from 1, through all stages of a pipeline."""
    number = getattr(module, "layer_number", None)
    return number - 1 if type(number) is int and number > 0 else None
