"""The calls on one line of Python: their dotted names, and the process group that one of ``torch.distributed`` is given."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

_MOST_CALLS = 32
_LONGEST_NAME = 200
_LONGEST_GROUP = 60

# Where the group stands among the positional arguments, in the signatures of torch 2.x.
_GROUP_AT = {
    **dict.fromkeys(("barrier", "monitored_barrier", "destroy_process_group", "_coalescing_manager"), 0),
    **dict.fromkeys(
        (
            *("all_reduce", "all_reduce_coalesced", "broadcast", "broadcast_object_list"),
            *("all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "_all_gather_base"),
            *("all_gather_object", "all_to_all", "send", "recv", "isend", "irecv", "send_object_list", "recv_object_list"),
            *("all_gather_tensor", "all_gather_tensor_autograd", "permute_tensor"),
        ),
        2,
    ),
    **dict.fromkeys(
        (
            *("reduce", "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single", "_reduce_scatter_base"),
            *("gather", "gather_object", "scatter", "scatter_object_list", "P2POp"),
            *("reduce_scatter_tensor_autograd", "reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced"),
        ),
        3,
    ),
    **dict.fromkeys(("all_gather_into_tensor_coalesced", "all_gather_single_coalesced"), 1),
    "all_to_all_single": 4,
    "all_to_all_single_autograd": 3,
}
_FUNCTIONAL = re.compile(r"(?:^|\.)(?:funcol|ft_c|_functional_collectives)\.")
_FUNCTIONAL_AT = {**_GROUP_AT, "all_to_all_single": 3}
_WRAPPERS = frozenset({"DDP", "DistributedDataParallel", "FSDP", "FullyShardedDataParallel", "fully_shard", "redistribute"})
_OF_TORCH = re.compile(r"(?:torch\.)?(?:dist|distributed|c10d)\.")
_KEYWORDS = frozenset({"group", "process_group", "pg", "mesh", "device_mesh"})
_GETTER = re.compile(r"(?:^|\.)_?get_(?:\w+_)?group$")


def read_calls(expressions: Iterable[ast.AST], line: int, rows: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The names of the calls that span the line, innermost last, and the group, empty if none is named there.

    ``rows`` are the lines of the file. At most `_MOST_CALLS` are given.
    """
    names: list[str] = []
    group = ""
    for node in _nodes_at(expressions, line):
        if isinstance(node, ast.withitem):
            entered = node.context_expr
            names.append(f"with {dotted_name(entered.func if isinstance(entered, ast.Call) else entered)}")
        elif isinstance(node, ast.Call):
            names.append(dotted_name(node.func))
            group = _find_group(node, names[-1], rows) or group
        if len(names) == _MOST_CALLS:
            break
    return tuple(names), group


def dotted_name(node: ast.AST) -> str:
    """``a.b``, ``a().b``, ``a[].b``; what is neither a name nor reached from one is ``?``. No argument, key or literal."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute):
            parts.append(f".{node.attr}")
        else:
            parts.append("()" if isinstance(node, ast.Call) else "[]")
        node = node.func if isinstance(node, ast.Call) else node.value
    parts.append(node.id if isinstance(node, ast.Name) else "?")
    return "".join(reversed(parts))[:_LONGEST_NAME]


def _nodes_at(expressions: Iterable[ast.AST], line: int) -> Iterator[ast.AST]:
    """All nodes that span the line, outer ones first. Not recursive: a program may be nested as deep as it likes."""
    waiting = list(expressions)[::-1]
    while waiting:
        node = waiting.pop()
        where = node.context_expr if isinstance(node, ast.withitem) else node
        first = getattr(where, "lineno", line)
        if first <= line <= (getattr(where, "end_lineno", None) or first):
            yield node
            waiting.extend(list(ast.iter_child_nodes(node))[::-1])


def _find_group(call: ast.Call, name: str, rows: Sequence[str]) -> str:
    last = name.rpartition(".")[2]
    known = (_FUNCTIONAL_AT if _FUNCTIONAL.search(name) else _GROUP_AT).get(last)
    if known is None and last not in _WRAPPERS and not _OF_TORCH.match(name):
        return ""
    for keyword in call.keywords:
        if keyword.arg in _KEYWORDS:
            return _group_text(keyword.value, rows)
    positional = call.args[: known + 1] if known is not None else []
    if known is None or len(positional) <= known or any(isinstance(item, ast.Starred) for item in positional):
        return ""
    return _group_text(positional[known], rows)


def _group_text(node: ast.expr, rows: Sequence[str]) -> str:
    """The source text of a short name, attribute, item or ``get_..._group()``, as it stands there."""
    if not _is_name(node) or node.lineno != node.end_lineno:
        return ""
    text = rows[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode(errors="replace")
    return text if len(text) <= _LONGEST_GROUP else ""


def _is_name(node: ast.expr) -> bool:
    inner: ast.AST = node
    while not isinstance(inner, ast.Name):
        if isinstance(inner, ast.Attribute | ast.Subscript):
            inner = inner.value
        elif isinstance(inner, ast.Call) and _GETTER.search(dotted_name(inner.func)):
            inner = inner.func
        else:
            return False
    return True
