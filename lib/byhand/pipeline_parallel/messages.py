"""The messages of a pipeline: sends that nobody waits for, receives that are ready before them.

*No deadlock*: a stage never stands still for a send. It keeps the tensor until it knows that the
other stage has it, and goes on computing.
*Overlap*: the next receive from each stage is posted ahead, so that a message travels while both
ends compute. Only one, because a buffer that waits is memory.
*Order*: all stages hold the whole schedule, so a receiver posts its receives in the order in which
the sender will send. Tags are not needed; gloo would honour them, NCCL would not.

On NCCL all messages between two ranks share one stream per group, so messages to a lower stage
need a group of their own, `reverse_group`: else two stages that send to each other wait for ever.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.pipeline_schedules.actions import (
    Actions,
    Product,
    incoming,
    makes,
    messages,
    receiver,
    route_of,
)
from byhand.pipeline_schedules.routes import Route


class Wire:
    """Sends and receives between the stages, which are the ranks of `group` in order."""

    def __init__(
        self, group: dist.ProcessGroup | None, reverse_group: dist.ProcessGroup | None, device: Any
    ):
        """Messages between chunks on `device`; through main memory where gloo carries them.

        gloo does where NCCL is missing, and where the group has both but no `reverse_group`.

        Raises:
            ValueError: NCCL alone, without a `reverse_group`.
        """
        backend = dist.get_backend(group)
        self.on_nccl = device.type == "cuda" and "nccl" in backend
        if self.on_nccl and reverse_group is None and "gloo" in backend:
            self.on_nccl = False
        if self.on_nccl and reverse_group is None and dist.get_world_size(group) > 1:
            raise ValueError(
                "on NCCL a pipeline needs a reverse_group, a second group of the same ranks: "
                "messages of one group between two ranks follow each other, in both directions"
            )
        self.stage = dist.get_rank(group)
        self.device = device if self.on_nccl else torch.device("cpu")  # gloo sends from main memory
        world: Any = dist.group.WORLD
        self._groups = (group or world, reverse_group or group or world)

    def isend(self, tensor: Tensor, stage: int) -> tuple:
        """Begin to send; the tensor returned must live until the work is complete."""
        tensor = tensor.to(self.device).contiguous()
        group = self._groups[stage < self.stage]
        return dist.isend(tensor, dist.get_global_rank(group, stage), group), tensor

    def irecv(self, shape: tuple[int, ...], dtype: torch.dtype, stage: int) -> tuple:
        """Begin to receive; the tensor returned is filled when the work is complete."""
        tensor = torch.empty(shape, dtype=dtype, device=self.device)
        group = self._groups[self.stage < stage]
        return dist.irecv(tensor, dist.get_global_rank(group, stage), group), tensor

    def connect(self, route: Route) -> None:
        """Meet every stage that this one will talk to, in both directions: a number of 4 bytes.

        NCCL connects two ranks at their first message, for which the first waits for the second. So
        all meet in one order, down the route and up again, before a schedule has them meet in its
        own.
        """
        down = [pair for pair in itertools.pairwise(route) if pair[0] != pair[1]]
        for sender, to in [*down, *(pair[::-1] for pair in reversed(down))]:
            if self.stage == sender:
                self.isend(torch.zeros(1), to)[0].wait()
            elif self.stage == to:
                self.irecv((1,), torch.float32, sender)[0].wait()


class Routes:
    """The messages of one stage, the same in every step."""

    def __init__(self, schedule: Actions, stage: int):
        self.stage, self.route = stage, route_of(schedule)
        self.made_at: dict[Product | None, int] = {}  # the number of the action that makes it,
        self.needed_at: dict[Product | None, int] = {}  # or needs it, on its stage
        for here, actions in enumerate(schedule):
            for number, action in enumerate(actions):
                self.made_at[makes(action, here, self.route)] = number
                self.needed_at[incoming(action, here, self.route)] = number
        self.arriving: dict[int, list[Product]] = {}  # by sender, in the order of its sends
        for product, to in messages(schedule):
            if to == stage:
                self.arriving.setdefault(self.route[product.place], []).append(product)


class Mailbox:
    """One stage's messages of one step."""

    def __init__(
        self, routes: Routes, wire: Wire, shapes: Sequence[tuple[int, ...]], dtype: torch.dtype
    ):
        """`shapes[micro_batch]`, of `dtype`, crosses every boundary, forward and back."""
        self.stage, self._routes, self._wire = routes.stage, routes, wire
        self._shapes, self._dtype = shapes, dtype
        self._expected = {sender: deque(some) for sender, some in routes.arriving.items()}
        self._posted: dict[Product, tuple[dist.Work, Tensor]] = {}
        self._sent: dict[Product, tuple[dist.Work, Tensor]] = {}
        self._own: dict[Product, Tensor] = {}  # from one chunk of this stage to another
        for sender in self._expected:
            self._post_next(sender)

    def send(self, product: Product, tensor: Tensor) -> None:
        """Begin to send to the stage that needs it, if one does, and return at once.

        Raises:
            ValueError: it is not of the shape and dtype that the other stage expects.
        """
        to = receiver(product, self._routes.route)
        if to == self.stage:
            self._own[product] = tensor
        elif to is not None:
            self._check(product, tensor)
            self._sent[product] = self._wire.isend(tensor, to)

    def receive(self, product: Product) -> Tensor:
        """The tensor, as soon as it is here."""
        sender = self._routes.route[product.place]
        if sender == self.stage:
            return self._own.pop(product)
        while product not in self._posted:
            self._post_next(sender)
        work, tensor = self._posted.pop(product)
        work.wait()
        if not any(self._routes.route[posted.place] == sender for posted in self._posted):
            self._post_next(sender)
        self._release(product)
        return tensor

    def close(self) -> None:
        """Wait until every message has left."""
        for work, _ in self._sent.values():
            work.wait()
        self._sent.clear()

    def _post_next(self, sender: int) -> None:
        if self._expected[sender]:
            product = self._expected[sender].popleft()
            shape = self._shapes[product.micro_batch]
            self._posted[product] = self._wire.irecv(shape, self._dtype, sender)

    def _check(self, product: Product, tensor: Tensor) -> None:
        shape = self._shapes[product.micro_batch]
        if (tuple(tensor.shape), tensor.dtype) != (shape, self._dtype):
            raise ValueError(
                f"on stage {self.stage} the {product.kind} of micro-batch {product.micro_batch} is "
                f"{list(tensor.shape)} {tensor.dtype}, but its Pipeline was told that "
                f"{list(shape)} {self._dtype} crosses every boundary: see row_shape and dtype"
            )

    def _release(self, arrived: Product) -> None:
        """Let go of the sends that the sender of `arrived` must have received by then."""
        routes = self._routes
        known = [
            product
            for product in self._sent
            if receiver(product, routes.route) == routes.route[arrived.place]
            and routes.needed_at[product] <= routes.made_at[arrived]
        ]
        for product in known:
            self._sent.pop(product)[0].wait()  # complete already: returns at once
