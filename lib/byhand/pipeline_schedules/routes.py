"""The way of a micro-batch through the stages: which stage keeps which part of the model. Pure.

A model of n parts, its *global stages*, is a list of n stage numbers, in the order in which a
forward passes them. That list is the only place where it is said who keeps what:

    0 1 2 3              a line: one part for each stage
    0 1 2 3 0 1 2 3      a loop of two chunks, as interleaved schedules have it
    0 1 2 3 3 2 1 0      a V: down and up again; stage 0 has both ends of the model

Chunk c of a stage is the part that its visit number c computes.
"""

from __future__ import annotations

from functools import cached_property


class Route(tuple):
    """Stage numbers, in the order of a forward: global stage g is on stage route[g].

    >>> Route([0, 1, 1, 0]).places(stage=0)
    [0, 3]
    """

    @cached_property
    def place(self) -> dict[tuple[int, int], int]:
        """The global stage of (stage, chunk)."""
        return {(stage, self[:place].count(stage)): place for place, stage in enumerate(self)}

    def places(self, stage: int) -> list[int]:
        """The global stages of one stage, by chunk."""
        return [place for place, at in enumerate(self) if at == stage]


def loop(num_stages: int, num_chunks: int = 1) -> Route:
    """Down the stages, and down again for each further chunk: part c·p + r is on stage r of p.

    >>> loop(3), loop(2, num_chunks=2)
    ((0, 1, 2), (0, 1, 0, 1))
    """
    return Route(list(range(num_stages)) * num_chunks)


def there_and_back(num_stages: int) -> Route:
    """The V: stage r of p keeps parts r and 2p - 1 - r.

    >>> there_and_back(3)
    (0, 1, 2, 2, 1, 0)
    """
    down = list(range(num_stages))
    return Route(down + down[::-1])
