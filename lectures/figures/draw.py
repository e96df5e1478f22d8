"""Draw the README's picture, timeline.svg, from a run made now.

Four ranks take two training steps on batches of unequal length. The gradient of the second layer
travels while the first layer's is computed; the gradient of the first layer is waited for.
"""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist

from byhand import launch
from byhand.figures import save_svg, timeline

TOKENS = ([2200, 1100, 3300, 1600], [1300, 2900, 1100, 2300])  # by step and rank
WIDTH = 384


def train(rank: int, world_size: int) -> None:
    generator = torch.Generator().manual_seed(rank)
    first, second = (torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5 for _ in range(2))
    dist.broadcast(first, src=0)
    dist.broadcast(second, src=0)
    for tokens in TOKENS:
        x = torch.randn(tokens[rank % len(tokens)], WIDTH, generator=generator)
        hidden = (x @ first).relu()
        grad_y = (hidden @ second - x) / len(x)
        grad_second = hidden.T @ grad_y
        travelling = dist.all_reduce(grad_second, async_op=True)
        grad_first = x.T @ ((grad_y @ second.T) * (hidden > 0))
        dist.all_reduce(grad_first)
        travelling.wait()
        first -= 0.1 * grad_first / world_size
        second -= 0.1 * grad_second / world_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    beside_this_file = Path(__file__).with_name("timeline.svg")
    parser.add_argument("path", nargs="?", type=Path, default=beside_this_file)
    path = parser.parse_args().path
    launch(train, world_size=4)  # the first launch starts the fork server
    run = launch(train, world_size=4)
    save_svg(timeline(run.ledger.events, run.spans), path)
    print(f"{path}: {run.summary()}")


if __name__ == "__main__":
    main()
