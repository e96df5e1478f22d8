"""Predicted beside measured: collectives of sizes held out.

    python tests/benchmarks/communication_cost.py [repetitions]

Alpha and beta are fitted to every other size and asked about the sizes between. Hosts are a virtual
network's, joined at 25 MB/s. An error is (predicted - measured) / measured.
"""

from __future__ import annotations

import argparse
import statistics

from byhand import VirtualNetwork
from byhand.communication_cost import cost
from byhand.communication_cost.lab import CALLS, sweep
from byhand.runtime import why_no_network

SIZES = tuple(2**power for power in range(4, 23))
HOSTS_SIZES = tuple(2**power for power in range(4, 21))
RATE = 25e6


def places() -> dict[str, tuple[int, VirtualNetwork | None]]:
    """Where to measure: a name, the number of ranks, and their network."""
    found = {"loopback": (2, None), "loopback, 4": (4, None)}
    if why_no_network() is None:
        found |= {
            "2 hosts": (2, VirtualNetwork(2, 1, RATE)),
            "2 × 2": (4, VirtualNetwork(2, 2, RATE)),
        }
    return found


def held_out_errors(collective: str, num_ranks: int, network, repetitions: int) -> tuple:
    """Errors by held-out size, the share inside the interval, and the fitted line."""
    sizes = SIZES if network is None else HOSTS_SIZES
    measured = sweep(collective, num_ranks, sizes, repetitions, network=network)
    known = list(measured.timings)
    fitted = measured.fit(known[::2])
    errors, inside = {}, []
    for num_bytes in known[1::2]:
        timing = measured.timings[num_bytes]
        expected = fitted.predict(cost(collective, num_ranks, num_bytes), timing.doubt)
        errors[num_bytes] = expected.seconds / timing.median - 1
        inside.append(expected.least <= timing.median <= expected.most)
    return errors, sum(inside) / len(inside), fitted.line


def print_collectives(repetitions: int) -> None:
    """Errors of sizes that were not fitted, by collective and place."""
    print("sizes held out: |error|, median and most; how many lie inside the 95 % interval")
    for place, (num_ranks, network) in places().items():
        for collective in CALLS:
            errors, inside, line = held_out_errors(collective, num_ranks, network, repetitions)
            found = [abs(error) for error in errors.values()]
            large = [abs(error) for size, error in errors.items() if size >= 1 << 18]
            numbers = f"{statistics.median(found):6.0%} {max(found):6.0%} {max(large):6.0%}"
            fitted = f"alpha {1e6 * line.alpha:6.0f} us {1e-6 / max(line.beta, 1e-15):7.0f} MB/s"
            print(
                f"{place:12} {collective:15} {numbers} (>= 256 KB) {inside:5.0%} inside  {fitted}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=9)
    repetitions = parser.parse_args().repetitions
    print_collectives(repetitions)


if __name__ == "__main__":
    main()
