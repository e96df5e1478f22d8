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

from collections import deque
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.pipeline_schedules.actions import (
    Product,
    Schedule,
    incoming,
    makes,
    messages,
    receiver,
    route_of,
)


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
        on_nccl = device.type == "cuda" and "nccl" in backend
        if on_nccl and reverse_group is None and "gloo" in backend:
            on_nccl = False
        if on_nccl and reverse_group is None and dist.get_world_size(group) > 1:
            raise ValueError(
                "on NCCL a pipeline needs a reverse_group, a second group of the same ranks: "
                "messages of one group between two ranks follow each other, in both directions"
            )
        self.stage = dist.get_rank(group)
        self.device = device if on_nccl else torch.device("cpu")  # gloo sends from main memory
        self._groups = (group or dist.group.WORLD, reverse_group or group or dist.group.WORLD)

    def isend(self, tensor: Tensor, stage: int) -> tuple[dist.Work, Tensor]:
        """Begin to send; the tensor returned must live until the work is complete."""
        tensor = tensor.to(self.device).contiguous()
        group = self._groups[stage < self.stage]
        return dist.isend(tensor, dist.get_global_rank(group, stage), group), tensor

    def irecv(self, shape: tuple[int, ...], dtype: torch.dtype, stage: int) -> tuple:
        """Begin to receive; the tensor returned is filled when the work is complete."""
        tensor = torch.empty(shape, dtype=dtype, device=self.device)
        group = self._groups[self.stage < stage]
        return dist.irecv(tensor, dist.get_global_rank(group, stage), group), tensor

    def send(self, tensor: Tensor, stage: int) -> None:
        """Send, and wait until it has left."""
        self.isend(tensor, stage)[0].wait()

    def receive(self, like: Tensor, stage: int) -> Tensor:
        """Receive a tensor with the shape and dtype of `like`."""
        work, tensor = self.irecv(tuple(like.shape), like.dtype, stage)
        work.wait()
        return tensor


class Routes:
    """The messages of one stage, the same in every step."""

    def __init__(self, schedule: Schedule, stage: int):
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

    def boundary(self, product: Product) -> int:
        """The global stage before which the message passes."""
        return product.place + 1 if product.kind == "output" else product.place


class Mailbox:
    """One stage's messages of one step."""

    def __init__(self, routes: Routes, wire: Wire, shapes: Any):
        """`shapes[boundary].of(micro_batch)` is a message's shape and dtype."""
        self.stage, self._routes, self._wire, self._shapes = routes.stage, routes, wire, shapes
        self._expected = {sender: deque(some) for sender, some in routes.arriving.items()}
        self._posted: dict[Product, tuple[dist.Work, Tensor]] = {}
        self._sent: dict[Product, tuple[dist.Work, Tensor]] = {}
        self._own: dict[Product, Tensor] = {}  # from one chunk of this stage to another
        for sender in self._expected:
            self._post_next(sender)

    def send(self, product: Product, tensor: Tensor) -> None:
        """Begin to send to the stage that needs it, if one does, and return at once."""
        to = receiver(product, self._routes.route)
        if to == self.stage:
            self._own[product] = tensor
        elif to is not None:
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
            shape = self._shapes[self._routes.boundary(product)].of(product.micro_batch)
            self._posted[product] = self._wire.irecv(*shape, sender)

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
