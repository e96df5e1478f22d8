"""Sorted by the quick formula, and simulated only what is near; an error of its own kind."""

import functools
from dataclasses import replace


class NothingFits(ValueError):
    pass


@functools.cache
def fits(layout, num_sequences, memory):
    stages = range(layout.pp)
    try:
        each = [held(MODEL, layout, num_sequences, stage, state=STATE) for stage in stages]
    except ValueError:
        return False
    return all(sum(kinds.values()) <= memory for kinds in each)


def fastest_layout(num_ranks, num_sequences, memory, rate, ranks_per_host=1):
    from byhand.costs import estimate

    def price(how, layout):
        machine = machine_of(rate, ranks_per_host)
        return sum(how(MODEL, layout, machine, num_sequences, STATE).values())

    fit = [
        layout
        for order in ORDERS
        for degrees in layouts(num_ranks, order, tp=HEADS)
        for rows in range(1, num_sequences + 1)
        if HEADS % degrees.tp == 0 and num_sequences % (degrees.dp * rows) == 0
        if fits(layout := replace(degrees, rows=rows), num_sequences, memory)
    ]
    if not fit:
        raise NothingFits(f"{num_ranks} ranks, {memory:,.0f} bytes")
    quick = {layout: price(estimate, layout) for layout in fit}
    near = [layout for layout in fit if quick[layout] <= 1.5 * min(quick.values())]
    return min(near, key=functools.partial(price, seconds))
