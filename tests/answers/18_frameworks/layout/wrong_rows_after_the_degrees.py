"""First the best degrees with micro-batches of one row, then the best rows for these alone."""

from dataclasses import replace


def fastest_layout(num_ranks, num_sequences, memory, rate, ranks_per_host=1):
    machine = machine_of(rate, ranks_per_host)

    def took(layout):
        try:
            for stage in range(layout.pp):
                if sum(held(MODEL, layout, num_sequences, stage, state=STATE).values()) > memory:
                    return float("inf")
            return sum(seconds(MODEL, layout, machine, num_sequences, STATE).values())
        except ValueError:
            return float("inf")

    every = [one for order in ORDERS for one in layouts(num_ranks, order)]
    best = min((one for one in every if MODEL.num_heads % one.tp == 0), key=took)
    best = min((replace(best, rows=n) for n in range(1, num_sequences + 1)), key=took)
    if took(best) == float("inf"):
        raise ValueError("nothing fits")
    return best
