"""Which sizes a collective takes, said where torch refuses others in words of its backend. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from byhand.words import counted


class _Rule(NamedTuple):
    """Of a collective: its outputs and inputs, given its arguments; what must hold of them.

    holds(outputs, inputs, arguments, n) for the shapes on n ranks.
    """

    call: str
    outputs: Callable[[Any], Sequence[Any]]
    inputs: Callable[[Any], Sequence[Any]]
    holds: Callable[[list, list, Any, int], bool]
    sentence: str


def _splits_hold(outputs: list, inputs: list, args: Any, n: int) -> bool:
    if not args[3] and not args[4]:  # even ones
        return math.prod(outputs[0]) == math.prod(inputs[0])
    splits = ((outputs[0], args[3]), (inputs[0], args[4]))
    return all(
        not split or (len(split) == n and [sum(split)] == shape[:1] and min(split) >= 0)
        for shape, split in splits
    )


AT_ONCE = ("alltoall_base_",)  # which gloo refuses only when it is under way
_RULES = {
    "_allgather_base_": _Rule(
        "all_gather_into_tensor",
        lambda a: [a[0]],
        lambda a: [a[1]],
        lambda out, given, _, n: (
            out[0] in ([n * given[0][0], *given[0][1:]] if given[0] else [n], [n, *given[0]])
        ),
        "The output holds the inputs of all {n}, end to end in the first dimension.",
    ),
    "_reduce_scatter_base_": _Rule(
        "reduce_scatter_tensor",
        lambda a: [a[0]],
        lambda a: [a[1]],
        lambda out, given, _, n: given[0][:1] == [n * size for size in out[0][:1]],
        "The input holds a shard for each of {n}, end to end in the first dimension, and the "
        "output is one.",
    ),
    "allgather_": _Rule(
        "all_gather",
        lambda a: a[0][0],
        lambda a: a[1],
        lambda out, given, _, n: out == n * given,
        "There is one output for each of {n}, in the input's shape.",
    ),
    "reduce_scatter_": _Rule(
        "reduce_scatter",
        lambda a: a[0],
        lambda a: a[1][0],
        lambda out, given, _, n: given == n * out,
        "There is one input for each of {n}, in the output's shape.",
    ),
    "alltoall_base_": _Rule(
        "all_to_all_single",
        lambda a: [a[0]],
        lambda a: [a[1]],
        _splits_hold,
        "Splits are one number of rows for each of {n}: the output's add up to its first "
        "dimension, and the input's to its own. Without splits both have as many elements.",
    ),
    "alltoall_": _Rule(
        "all_to_all",
        lambda a: a[0],
        lambda a: a[1],
        lambda out, given, _, n: len(out) == len(given) == n,
        "There is one output and one input for each of {n}.",
    ),
}


def misfit(opname: str, args: Any, n: int) -> str | None:
    """Why a c10d operation on n ranks can take no tensors of these shapes; None if not for that.

    args: its arguments, a tensor as (shape, dtype), a list as a tuple.
    """
    if (rule := _RULES.get(opname)) is None:
        return None
    outputs, inputs = list(rule.outputs(args)), list(rule.inputs(args))
    into, given = ([list(shape) for shape, _ in side] for side in (outputs, inputs))
    dtypes = {dtype for _, dtype in [*outputs, *inputs]}
    if rule.holds(into, given, args, n) and len(dtypes) == 1:
        return None
    refused = f"{rule.call} cannot put {_listed(inputs)} into {_listed(outputs)} on {n} ranks"
    if opname == "alltoall_base_" and (args[3] or args[4]):
        refused += f", with output splits {list(args[3])} and input splits {list(args[4])}"
    if len(dtypes) > 1:
        return f"{refused}. All are of one dtype."
    return f"{refused}. {rule.sentence.format(n=counted(n, 'rank'))}"


def _listed(tensors: list) -> str:
    """Tensors by shape and dtype, equal ones once."""
    texts = [f"{list(shape)} {str(dtype).removeprefix('torch.')}" for shape, dtype in tensors]
    if len(texts) == 1:
        return texts[0]
    return f"{counted(len(texts), 'tensor')} of {' and '.join(dict.fromkeys(texts)) or 'no shape'}"
