"""Draw the stored figures, each from a run made now, or from what was counted and measured.

animated.svg, on the first page: four stages of a pipeline compute eight micro-batches by 1F1B.
counted.svg, seconds.svg and judged.svg, below it: see promises.py.

two_hosts.svg, for readers of lecture 03 whose kernel allows no virtual network: the bytes that
a ring and two levels send out of a host, by ledger and kernel.
"""

import argparse
from pathlib import Path

import promises

from byhand import VirtualNetwork
from byhand.all_reduce.lab import compare_on_hosts
from byhand.figures import save_animated_svg, save_svg, schedule_timeline
from byhand.figures.recorded import FOLDER
from byhand.pipeline_parallel.lab import sleep_through
from byhand.pipeline_schedules import one_forward_one_backward
from byhand.runtime import why_no_network


def draw_two_hosts(path: Path) -> None:
    if (why := why_no_network()) is not None:
        print(f"{path} stays as it is: {why}")
        return
    network = VirtualNetwork(2, 2, bytes_per_second=4e6)
    compared = compare_on_hosts(network, 1 << 22)
    save_svg(compared.picture(), path)
    print(f"{path}:\n{compared}")


def draw_animated(path: Path) -> None:
    recorded = sleep_through(one_forward_one_backward(4, 8), 0.05, 0.05, 0.05)
    figure = schedule_timeline(recorded, names=["Recorded, 1F1B"])
    save_animated_svg(figure, path)
    print(f"{path}: {figure.texts[0].get_text()}")


DRAWN = {
    "animated": draw_animated,
    "counted": promises.draw_counted,
    "seconds": promises.draw_seconds,
    "judged": promises.draw_judged,
    "two_hosts": draw_two_hosts,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--only", choices=DRAWN)
    options = parser.parse_args()
    for name, draw in DRAWN.items():
        if options.only in (None, name):
            draw(options.folder / f"{name}.svg")


if __name__ == "__main__":
    main()
