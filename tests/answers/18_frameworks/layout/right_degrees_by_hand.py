"""Loops over degrees instead of the library's list; the rows that divide; a running minimum."""

import itertools


def fits(layout, num_sequences, memory):
    for stage in range(layout.pp):
        if sum(held(MODEL, layout, num_sequences, stage, state=STATE).values()) > memory:
            return False
    return True


def fastest_layout(num_ranks, num_sequences, memory, rate, ranks_per_host=1):
    best, least, machine = None, float("inf"), machine_of(rate, ranks_per_host)
    for dp, tp, pp in itertools.product(range(1, num_ranks + 1), repeat=3):
        if dp * tp * pp != num_ranks or HEADS % tp or pp > 2 * BLOCKS or num_sequences % dp:
            continue
        for rows, order in itertools.product(range(num_sequences // dp, 0, -1), reversed(ORDERS)):
            layout = Layout(dp, tp, pp, order=order, rows=rows)
            if num_sequences % (dp * rows) or not fits(layout, num_sequences, memory):
                continue
            took = sum(seconds(MODEL, layout, machine, num_sequences, STATE).values())
            if took < least:
                best, least = layout, took
    if best is None:
        raise ValueError("nothing fits")
    return best
