"""The flat parameter: a unit's parameters end to end in one tensor, of which each rank keeps 1/n.

    whole     w₀ w₀ w₀ w₀ b₀ │ b₀ w₁ w₁ w₁ w₁ │ w₁ b₁ b₁ 0  0      N numbers, and zeros up to n · k
    shard       rank 0's k   │   rank 1's k   │   rank 2's k

Cuts take no notice of where one parameter ends and the next begins: all shards are equal, whatever
the shapes, and one call moves them all. The zeros are nobody's: their gradient is zero, they stay
zero, and so they count for nothing in a norm.

n ranks in `group`, N parameters in the unit, k = ⌈N/n⌉.
Source: Zhao et al. 2023, arXiv:2304.11277 (PyTorch FSDP), section 3.2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.collectives.with_torch import ALL_GATHER, REDUCE_SCATTER
from byhand.model.layer import Layer
from byhand.model.mlp import MLP
from byhand.model.shards import Group, views


def flatten(tensors: Sequence[Tensor], num_ranks: int) -> Tensor:
    """The tensors end to end, and as many zeros as make n equal shards: [n · k].

    Raises:
        ValueError: they are of several dtypes.

    >>> flatten([torch.ones(2, 2), torch.tensor([7.0])], num_ranks=4)
    tensor([1., 1., 1., 1., 7., 0., 0., 0.])
    """
    if len({tensor.dtype for tensor in tensors}) > 1:
        found = ", ".join(sorted({str(tensor.dtype) for tensor in tensors}))
        raise ValueError(f"a unit's parameters are of {found}: a flat tensor has one dtype")
    numbers = [tensor.flatten() for tensor in tensors]
    missing = -sum(map(len, numbers)) % num_ranks
    return torch.cat([*numbers, numbers[0].new_zeros(missing)])


class Flat:
    """One unit's parameters and their gradient: this rank's shards, and the whole while needed.

    shard [k]            its parameters, which its optimizer changes: the master copy; where whole
                         stays and has the same dtype, a view of it
    grad_shard [k]       the sum over ranks of their gradient; None before there is one
    whole [n · k]        everybody's parameters, in the dtype that is computed in; or None
    grad_whole [n · k]   this rank's gradient of all of them: a term of the sum; or None

    Its parameters and its gradient go through three states each:

    parameters   whole       arriving    the unit computes with
    sharded      None        None        empty tensors          start_gather, fetch -> gathering
    gathering    [n · k]     a work      what it had before     finish_gather -> whole
    whole        [n · k]     None        views of whole         start_gather -> gathering
                                                                free -> sharded

    gradient     grad_whole  sending     the unit adds to
    none         None        None        empty tensors          make_grad -> whole
    whole        [n · k]     None        views of grad_whole    start_reduce -> summing
                                                                free_grad -> none
    summing      [n · k],    a work,     views of it, or empty  free_grad lets go of grad_whole;
                 or None     a sum [k]   tensors                finish_reduce -> whole, or none

    finish_reduce adds the sum to grad_shard, and the optimizer's step forgets that. grad_shard is a
    view where grad_whole stays, else a copy, for a view would keep the whole. Between two steps
    parameters and gradient are whole in stage 1, parameters alone in stage 2, neither in 3.
    """

    def __init__(
        self,
        unit: Layer,
        group: Group,
        replicas: Group,
        dtype: torch.dtype | None,
        reduce_dtype: torch.dtype | None,
        reduce_scatter: Callable[[Tensor, Tensor, Group], Any],
    ):
        """Take over the parameters of rank 0 of each group, and keep this rank's shard of them."""
        self.unit, self.group, self.reduce_scatter = unit, group, reduce_scatter
        self.rank, self.num_ranks = dist.get_rank(group), dist.get_world_size(group)
        parameters = unit.parameters()
        self.shapes = [parameter.shape for parameter in parameters]
        whole = flatten(parameters, self.num_ranks)
        if replicas is not None:
            dist.broadcast(whole, group=replicas, group_src=0)
        dist.broadcast(whole, group=group, group_src=0)
        self.shard = self.mine(whole).clone()
        self.dtype = dtype or whole.dtype
        self.reduce_dtype = reduce_dtype or self.dtype
        # None, or what the docstring of the class says
        self.whole: Any = None
        self.grad_whole: Any = None
        self.grad_shard: Any = None
        self.arriving: Any = None
        self.sending: Any = None
        self.partial = False  # whether a backward has added to grad_whole since it was last sent
        self.empty = whole.new_empty(0, dtype=self.dtype)
        unit.keep_parameters_in(repeat(self.empty))
        unit.keep_gradients_in(repeat(self.empty))

    def stay_whole(self) -> None:
        """Parameters that are never freed need no shard beside them, if both have one dtype."""
        if self.dtype == self.shard.dtype:
            whole = self.empty.new_empty(self.num_ranks * len(self.shard))
            self.whole, self.shard = whole, self.mine(whole).copy_(self.shard)

    def mine(self, whole: Tensor) -> Tensor:
        """This rank's [k] of an [n · k], as a view."""
        return whole.chunk(self.num_ranks)[self.rank]

    def start_gather(self) -> None:
        """Begin to fill `whole` with all shards. Sends (n-1) · k numbers."""
        if self.whole is None:
            self.whole = self.empty.new_empty(self.num_ranks * len(self.shard))
        mine = self.shard.to(self.dtype)
        self.arriving = ALL_GATHER(self.whole, mine, self.group, async_op=True)

    def fetch(self) -> None:
        """The same, unless `whole` is there or under way."""
        if self.whole is None:
            self.start_gather()

    def finish_gather(self) -> None:
        """Wait for it, and let the unit compute with it."""
        if self.arriving is not None:
            self.arriving.wait()
            self.arriving = None
            self.unit.keep_parameters_in(views(self.whole, self.shapes))

    def free(self) -> None:
        """Let go of `whole`; whoever computes with the unit now meets empty tensors."""
        self.whole = None
        self.unit.keep_parameters_in(repeat(self.empty))

    def make_grad(self) -> None:
        """Room for the whole gradient, all zeros, unless it is there."""
        if self.grad_whole is None:
            self.grad_whole = self.empty.new_zeros(self.num_ranks * len(self.shard))
            self.unit.keep_gradients_in(views(self.grad_whole, self.shapes))

    def free_grad(self) -> None:
        """Let go of `grad_whole`; what is under way of it stays until it has arrived."""
        self.grad_whole = None
        self.unit.keep_gradients_in(repeat(self.empty))

    def start_reduce(self) -> None:
        """Begin to sum `grad_whole` over ranks. Sends (n-1) · k numbers.

        The sum is made in place: what is under way is this rank's part of it, a view.
        """
        self.partial = False
        sent = self.grad_whole.to(self.reduce_dtype)
        mine = self.mine(sent)
        self.sending = self.reduce_scatter(mine, sent, self.group), mine

    def finish_reduce(self) -> None:
        """Wait for the sum, and add it to `grad_shard`."""
        (work, mine), self.sending = self.sending, None
        work.wait()
        if self.grad_shard is None:
            stays = self.grad_whole is not None and self.reduce_dtype == self.dtype
            self.grad_shard = mine if stays else mine.clone()
        else:
            self.grad_shard += mine


def torchs_own(mine: Tensor, whole: Tensor, group: Group) -> dist.Work:
    """whole [n · k], partial -> mine [k], sharded, after wait()."""
    return REDUCE_SCATTER(mine, whole, group=group, async_op=True)


def units(layers: Iterable[Layer]) -> Iterator[MLP]:
    """Runs of layers that are gathered together, each as one layer.

    A layer begins a unit if it has parameters or uses another's (a tied head); those without go
    with the unit before them, for they give nobody time to send. `layers` is read as units are
    asked for: where it makes layers one by one, one unit is whole, and the layer that follows it.

    Raises:
        ValueError: no layer has parameters.

    >>> from byhand.mlp import MLP
    >>> pairs = [(torch.ones(3, 2), torch.zeros(3)), (torch.ones(1, 3), torch.zeros(1))]
    >>> for unit in units(MLP.from_weights(pairs).layers):
    ...     print([type(layer).__name__ for layer in unit.layers])
    ['Linear', 'ReLU']
    ['Linear']
    """
    run: list[Layer] = []
    for layer in layers:
        if run and begins_a_unit(layer) and any(map(begins_a_unit, run)):
            yield MLP(run)
            run = []
        run.append(layer)
    if not any(map(begins_a_unit, run)):
        raise ValueError("no layer has parameters: there is nothing to shard")
    yield MLP(run)


def begins_a_unit(layer: Layer) -> bool:
    return bool(layer.parameters()) or owner(layer) is not layer


def owner(layer: Layer) -> Layer:
    """The layer whose parameters this one computes with: itself, but for a tied head."""
    return getattr(layer, "owner", layer)
