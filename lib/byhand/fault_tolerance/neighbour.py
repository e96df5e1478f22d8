"""A neighbour's memory as checkpoint: each rank keeps another's state, and gives it back.

A disk is far; the memory of the next host is one message away. With every save a rank sends its
state to the rank `distance` after it, and keeps what the one before it sends, and a copy of its
own. When a rank dies, its replacement gets its state from that neighbour; all others go back to
their own copies, so that all are at the same step again:

    saved     rank 0: 0 and 2    rank 1: 1 and 0    rank 2: 2 and 1
    rank 1 dies; a new rank 1 gets 1 from rank 2; ranks 0 and 2 copy what they have

Two neighbours that die together lose the older one's state: then the disk has it, so one saves
there too, seldom. A distance of one host's ranks outlives the death of a host.
Source: Wang et al. 2023, doi:10.1145/3600006.3613145 (Gemini).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.fault_tolerance.agreement import gathered
from byhand.words import ranks_text

Group = dist.ProcessGroup | None


class Neighbour:
    """What a rank keeps of itself and of the rank `distance` before it: twice its state.

    tensors: the state, of the same shapes and dtypes on all ranks; whoever wants to know the step
    puts that in, too. A replacement makes its own, of new tensors.
    """

    def __init__(self, tensors: Iterable[Tensor], group: Group = None, distance: int = 1):
        self.tensors, self.group, self.distance = list(tensors), group, distance
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        if distance % self.size == 0:
            raise ValueError(
                f"{self.size} ranks and a distance of {distance}: each would keep its own state"
            )
        self.own, self.kept = self._empty(), self._empty()
        self.count = 0  # how often something was kept

    def keep(self) -> None:
        """On all ranks: keep this rank's state and the one before's. Sends this rank's state.

        Until all ranks have what is new, each has what was kept before, too: four states.
        """
        own, kept = self._empty(), self._empty()
        for saved, tensor in zip(own, self.tensors, strict=True):
            saved.copy_(tensor.detach())
        self._pass(own, to=self.rank + self.distance, into=kept, of=self.rank - self.distance)
        dist.barrier(self.group)
        self.own, self.kept, self.count = own, kept, self.count + 1

    def give_back(self, dead: Iterable[int]) -> None:
        """On all ranks of the new group: fill the tensors with what was kept last.

        dead: the group ranks that are new. Sends a state for each of them, from its neighbour, and
        one all-gather of an int64. Then all keep what they have: the next death may be near.

        Raises:
            ValueError, on all ranks alike: one died together with the rank that kept its state, or
            while the others went from one save to the next.
        """
        dead = sorted(set(dead))
        for rank in dead:
            if (holder := (rank + self.distance) % self.size) in dead:
                raise ValueError(
                    f"{ranks_text(dead)} died, and rank {holder} kept what rank {rank} had: load "
                    "a checkpoint from the disk"
                )
        counts = gathered(self.count, self.group)
        alive = {count for rank, count in enumerate(counts) if rank not in dead}
        if len(alive) > 1 or 0 in alive:
            raise ValueError(
                f"the ranks that live kept their states {sorted(alive)} times, so they are not of "
                "one step: load a checkpoint from the disk"
            )
        before = (self.rank - self.distance) % self.size
        lost = self.rank in dead
        self._pass(
            self.kept if before in dead else [],
            to=before,
            into=self.own if lost else [],
            of=self.rank + self.distance,
        )
        with torch.no_grad():
            for tensor, saved in zip(self.tensors, self.own, strict=True):
                tensor.copy_(saved)
        self.count = alive.pop()
        self.keep()

    def _empty(self) -> list[Tensor]:
        """Room for a state, row by row, as messages want it."""
        row_by_row = torch.contiguous_format
        return [torch.empty_like(t.detach(), memory_format=row_by_row) for t in self.tensors]

    def _pass(self, tensors: list[Tensor], to: int, into: list[Tensor], of: int) -> None:
        """Send some to a group rank while others come from one."""
        to, of = to % self.size, of % self.size
        calls = [
            dist.irecv(tensor, group=self.group, group_src=of, tag=tag)
            for tag, tensor in enumerate(into)
        ]
        calls += [
            dist.isend(tensor, group=self.group, group_dst=to, tag=tag)
            for tag, tensor in enumerate(tensors)
        ]
        for call in calls:
            if call is not None:
                call.wait()
