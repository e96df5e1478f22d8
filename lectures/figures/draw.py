"""Draw the stored figures, each from a run made now, or from what was counted and measured.

animated.svg, on the first page: four stages of a pipeline compute eight micro-batches by 1F1B.
counted.svg, seconds.svg and judged.svg, below it: see promises.py.

two_hosts.svg, for readers of lecture 03 whose kernel allows no virtual network: the bytes that
three ways to all-reduce send out of a host, by ledger and kernel.

numberings.svg, for readers of lecture 12 likewise: the seconds of a step of eight ranks on two
hosts, by the axis whose groups cross the slow link.
"""

import argparse
from pathlib import Path

import promises

from byhand import VirtualNetwork
from byhand.all_reduce.lab import ALGORITHMS, compare_on_hosts
from byhand.figures import save_animated_svg, save_svg, schedule_timeline
from byhand.figures.recorded import FOLDER
from byhand.hybrid_parallel import lab as hybrid
from byhand.hybrid_parallel.layouts import Layout, predict_bytes
from byhand.model.gpt import costs_of, random_gpt
from byhand.model.text import text_batches
from byhand.pipeline_parallel.lab import sleep_through
from byhand.pipeline_schedules import one_forward_one_backward
from byhand.runtime import why_no_network


def draw_two_hosts(path: Path) -> None:
    if (why := why_no_network()) is not None:
        print(f"{path} stays as it is: {why}")
        return
    network, names = VirtualNetwork(2, 2, bytes_per_second=10e6), tuple(ALGORITHMS)[-2:]
    compared = compare_on_hosts(network, 1 << 22, ("ring", *names))
    save_svg(compared.picture(), path)
    print(f"{path}:\n{compared}")


def draw_animated(path: Path) -> None:
    recorded = sleep_through(one_forward_one_backward(4, 8), 0.05, 0.05, 0.05)
    figure = schedule_timeline(recorded, names=["Recorded, 1F1B"])
    save_animated_svg(figure, path)
    print(f"{path}: {figure.texts[0].get_text()}")


def draw_numberings(path: Path) -> None:
    if (why := why_no_network()) is not None:
        print(f"{path} stays as it is: {why}")
        return
    weights = random_gpt(128, 16, 32, 8, 4)
    (batch,) = text_batches(1, 16, 16)
    orders = {"tp": "dp-pp-cp-ep-tp", "dp": "tp-pp-cp-ep-dp", "pp": "tp-cp-ep-dp-pp"}
    ways = {axis: Layout(2, 2, 2, order=order) for axis, order in orders.items()}
    sent = predict_bytes(costs_of(weights), list(ways.values()), len(batch[0]))
    on_paper = {axis: sent[way][axis] / 2 / 0.25e6 for axis, way in ways.items()}
    on_paper["pp"] += sent[ways["pp"]]["embedding"] / 2 / 0.25e6
    network = VirtualNetwork(2, 4, bytes_per_second=0.25e6)
    timed = hybrid.time_layouts(weights, list(ways.values()), batch, 0.0, network)
    measured = {axis: min(timed[way].whole.seconds) for axis, way in ways.items()}
    save_svg(hybrid.link_bars(on_paper, measured), path)
    print(f"{path}: {measured}")


DRAWN = {
    "animated": draw_animated,
    "counted": promises.draw_counted,
    "seconds": promises.draw_seconds,
    "judged": promises.draw_judged,
    "two_hosts": draw_two_hosts,
    "numberings": draw_numberings,
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
