"""Offload that hides: while one layer computes, the one before is written, or the next one read.

    forward    layer 0    layer 1    layer 2        backward   layer 2    layer 1    layer 0
    file                  ──► 0      ──► 1          file       1 ◄──      0 ◄──

One thread writes and reads, in the order in which it is asked: a copy stream. What the last layer
saves is wanted at once, and stays. Beside that, memory holds at most what two layers save: one that
computes, and one that comes or goes. All of it hides where computing a layer takes longer.
Source: Rajbhandari et al. 2021, arXiv:2104.07857 (ZeRO-Infinity), section 6.2 (overlap).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from byhand.memory.offload import Stored, load, store
from byhand.model.layer import Layer
from byhand.model.optimizers import AdamW
from byhand.words import counted


class Tier(NamedTuple):
    """A slower place: a folder, and the most bytes a second, or as fast as its disk is."""

    folder: str | Path
    bytes_per_second: float = float("inf")

    def write(self, saved: Any, device: torch.device) -> Stored:
        """Into a file."""
        return self._paced(store, saved, self.folder, device)

    def read(self, stored: Stored) -> Any:
        """All of it, into memory."""
        return self._paced(load, stored, True)

    def _paced(self, function: Callable[..., Any], *args: Any) -> Any:
        """The function's value, no sooner than the file's bytes take."""
        begun = time.monotonic()
        value = function(*args)
        stored = value if isinstance(value, Stored) else args[0]
        seconds = stored.num_bytes / self.bytes_per_second
        time.sleep(max(0.0, begun + seconds - time.monotonic()))
        return value


class OffloadedLayers(Layer):
    """Layers one after the other; what all but the last save lies in files until backward.

    ahead: whether writing and reading go on beside computing; else everything waits for them.
    """

    layers: list[Layer]

    def __init__(self, layers: Sequence[Layer], tier: Tier, ahead: bool = True):
        self.layers, self.tier, self.ahead = list(layers), tier, ahead
        self.thread = ThreadPoolExecutor(1)

    def forward(self, x: Tensor) -> tuple[Tensor, list[Any]]:
        """x -> y; saves files, and what the last layer saved. Writes all but that."""
        files: list[Any] = []
        for layer in self.layers[:-1]:
            y, saved = layer.forward(x)
            if files:
                files[-1] = files[-1].result()  # no third layer's lies in memory
            files.append(self._begin(self.tier.write, saved, x.device))
            x, saved = y, None
        y, saved = self.layers[-1].forward(x)
        return y, [*files[:-1], *(each.result() for each in files[-1:]), saved]

    def backward(self, grad_y: Tensor, saved: list[Any]) -> Tensor:
        """grad_y -> grad_x. Adds to the gradients. Reads what forward wrote."""
        for layer, item in self._read(saved):
            grad_y = layer.backward(grad_y, item)
            del item  # its place is wanted
        return grad_y

    def backward_input(self, grad_y: Tensor, saved: list[Any]) -> tuple[Tensor, list[Any]]:
        """grad_y -> grad_x; keeps what the layers keep, which is not offloaded."""
        kept = []
        for layer, item in self._read(saved):
            grad_y, mine = layer.backward_input(grad_y, item)
            del item
            kept.append((layer, mine))
        return grad_y, kept

    def backward_weight(self, kept: list[Any]) -> None:
        """Add to every layer's gradients."""
        for layer, mine in kept:
            layer.backward_weight(mine)

    def _read(self, saved: list[Any]) -> Iterator[tuple[Layer, Any]]:
        """Each layer, the last first, and what it saved; that of the next is on its way."""
        *files, item = saved
        for layer in reversed(self.layers):
            coming = self._begin(self.tier.read, files.pop()) if files else None
            yield layer, item
            item = None  # may go before the next comes
            item = coming.result() if coming else None

    def _begin(self, function: Callable[..., Any], *args: Any) -> Future:
        started = self.thread.submit(function, *args)
        if not self.ahead:
            started.result()
        return started


class OffloadedAdamW:
    """AdamW whose two means lie in files, but for the parameter at work and the next one."""

    def __init__(self, parameters: list[Tensor], tier: Tier, **settings: Any):
        """settings: AdamW's own. Each parameter has an AdamW, so equals one AdamW to the bit."""
        self.tier, self.thread, self.each, self.files = tier, ThreadPoolExecutor(1), [], []
        for parameter in parameters:
            optimizer = AdamW([parameter], **settings)
            self.each.append(optimizer)
            self.files.append(self._write(optimizer))

    def step(self, gradients: list[Tensor]) -> None:
        """Change the parameters in place. Reads 8 bytes of each float32 number, and writes 8.

        Raises:
            ValueError: more or fewer gradients than parameters; none has moved.
        """
        if len(gradients) != len(self.each):
            given = counted(len(gradients), "gradient")
            wanted = counted(len(self.each), "parameter")
            raise ValueError(
                f"{given} for {wanted}: a step takes one for each parameter, in their order"
            )
        coming = [self.thread.submit(self.tier.read, file) for file in self.files[:1]]
        for number, optimizer in enumerate(self.each):
            optimizer.mean, optimizer.square = coming.pop().result()
            for file in self.files[number + 1 : number + 2]:
                coming.append(self.thread.submit(self.tier.read, file))
            optimizer.step([gradients[number]])
            self.files[number] = self._write(optimizer)

    def _write(self, optimizer: AdamW) -> Stored:
        """The two means into a file; they are kept there alone."""
        means = optimizer.mean, optimizer.square
        optimizer.mean = optimizer.square = []
        return self.tier.write(means, optimizer.parameters[0].device)
