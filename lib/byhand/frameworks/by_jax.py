"""Lecture 07's MLP in JAX, whose compiler writes the calls: read `programs`.

    shard_map           one device's program, as in this course; only its backward is JAX's
    jit, weights split  the whole program, and how arrays lie: the compiler finds lecture 07's calls
    jit, rows split     the same program, laid out otherwise: it finds lecture 05's

JAX counts a process's devices once, so `one_step` wants a fresh process, which it gives several.
Shapes: x and y [T, D], up [H, D], down [D, H]; D features, H hidden, T rows.
Sources: docs.jax.dev, notebooks/shard_map and sharded-computation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Pairs = Sequence[tuple[Tensor, Tensor]]
OPS = "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"
ITEM_BYTES = {"f32": 4}


@dataclass(frozen=True)
class OneStep:
    """One loss, and the gradients of x, up, its bias, down and its bias, all whole; each call's
    name and bytes, forward, and forward and backward together.
    """

    loss: float
    gradients: list[Tensor]
    forward: list[tuple[str, int]]
    step: list[tuple[str, int]]


def programs() -> dict[str, Callable]:
    """x, up, up_bias, down, down_bias, all whole -> y. Over all devices of this process."""
    import jax
    from jax.sharding import PartitionSpec as P

    def one_device(x, up, up_bias, down, down_bias):  # type: ignore[no-untyped-def]
        y = jax.nn.relu(x @ up.T + up_bias) @ down.T  # its rows of up, columns of down
        return jax.lax.psum(y, "tp") + down_bias

    def whole(x, up, up_bias, down, down_bias):  # type: ignore[no-untyped-def]
        return jax.nn.relu(x @ up.T + up_bias) @ down.T + down_bias

    weights = P(), P("tp"), P("tp"), P(None, "tp"), P()  # P(): all have it whole
    rows = P("tp"), P(), P(), P(), P()
    split = jax.shard_map(one_device, mesh=_mesh(), in_specs=weights, out_specs=P())
    return {
        "shard_map": split,
        "jit, weights split": laid_out(whole, weights),
        "jit, rows split": laid_out(whole, rows),
    }


def without_psum() -> str:
    """What shard_map says to a row-parallel layer that leaves its sum out."""
    import jax
    from jax.sharding import PartitionSpec as P

    def one_device(x, down):  # type: ignore[no-untyped-def]
        return x @ down.T  # one term of the sum

    by_column = P(None, "tp")
    split = jax.shard_map(one_device, mesh=_mesh(), in_specs=(by_column, by_column), out_specs=P())
    ones = jax.numpy.ones((2, jax.device_count()))
    try:
        jax.jit(split)(ones, ones)
    except ValueError as error:
        told = " ".join(f"ValueError: {error}".split())
        return told.partition(": The ")[0]  # what follows names the mesh
    return "nothing"


def one_step(
    weights: Pairs, x: Tensor, target: Tensor, num_devices: int = 4
) -> tuple[dict[str, OneStep], str]:
    """In a fresh process, on that many devices of its CPU: every program, and the refusal."""
    devices = f"--xla_force_host_platform_device_count={num_devices}"
    os.environ.update(XLA_FLAGS=devices, JAX_PLATFORMS="cpu")
    import jax

    arrays = [jax.numpy.asarray(tensor.numpy()) for tensor in (x, *weights[0], *weights[1])]
    goal = jax.numpy.asarray(target.numpy())
    return {name: _one_step(way, arrays, goal) for name, way in programs().items()}, without_psum()


def _one_step(program: Callable, arrays: Sequence[Any], goal: Any) -> OneStep:
    import jax

    def loss(*given: Any) -> Any:
        return jax.numpy.square(program(*given) - goal).mean()

    every = tuple(range(len(arrays)))
    forward: Any = jax.jit(loss).lower(*arrays).compile()
    step: Any = jax.jit(jax.value_and_grad(loss, every)).lower(*arrays).compile()
    value, gradients = jax.device_get(step(*arrays))
    tensors = [torch.tensor(each) for each in gradients]
    return OneStep(float(value), tensors, calls(forward.as_text()), calls(step.as_text()))


def calls(compiled: str) -> list[tuple[str, int]]:
    """The collectives in a compiled program's text: each one's name, and the bytes of its result.

    One call may have several arrays: %all-reduce.5 = (f32[], f32[32,8]{1,0}) all-reduce(...)
    """
    lines = re.findall(rf"= (.*?) ({'|'.join(OPS)})(?:-start)?\(", compiled)
    return [(op.replace("-", "_"), _num_bytes(result)) for result, op in lines]


def _num_bytes(result: str) -> int:
    total = 0
    for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", result):
        size = ITEM_BYTES[kind]
        for length in filter(None, shape.split(",")):
            size *= int(length)
        total += size
    return total


def _mesh() -> Any:
    import jax

    auto = (jax.sharding.AxisType.Auto,)
    return jax.make_mesh((jax.device_count(),), ("tp",), axis_types=auto)


def laid_out(program: Callable, specs: Sequence[Any]) -> Callable:
    """The program whose inputs are said to lie so; everything else is the compiler's."""
    import jax

    places = [jax.sharding.NamedSharding(_mesh(), spec) for spec in specs]

    def run(*arrays: Any) -> Any:
        constrain = jax.lax.with_sharding_constraint
        return program(*map(constrain, arrays, places))

    return run
