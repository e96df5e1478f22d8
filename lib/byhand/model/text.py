"""Real text that every Python carries: its own reference, whose bytes are the tokens."""

from __future__ import annotations

import torch
from torch import Tensor


def text_batches(
    num_steps: int, num_sequences: int, num_positions: int
) -> list[tuple[Tensor, Tensor]]:
    """Each step's tokens [num_sequences, num_positions] and those that follow.

    The text is Python's documentation: the same each time, and another in each version of Python.
    """
    from pydoc_data.topics import topics

    text = "\n".join(topics.values()).encode("ascii", "ignore")
    tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(0)
    last = len(tokens) - num_positions - 1
    starts = torch.randint(last, (num_steps, num_sequences, 1), generator=generator)
    pieces = tokens[starts + torch.arange(num_positions + 1)]
    return [(piece[:, :-1], piece[:, 1:]) for piece in pieces]
