"""The plan is written anew, with the ring of task 2's statement by strides."""


def mended_plan(sizes, at, machine, num_sequences, num_tokens, block_seconds):
    replicas, stages, host = at.dp, at.pp, machine.ranks_per_host
    micro_batches = num_sequences / (replicas * at.rows)
    turn = sizes.layers / stages * block_seconds
    idle = (stages - 1) / at.chunks * turn
    pipeline = micro_batches * turn + idle
    pace = machine.inside
    for group in at.groups["dp"]:
        together = {}
        for rank in group:
            together.setdefault(rank // host, []).append(rank)
        if len(together) > 1:
            pace = min([pace, *(len(ranks) * machine.card for ranks in together.values())])
    moved = 8 * parameters(sizes, at, False) * (replicas - 1) / replicas
    tokens = num_sequences * sizes.positions
    d = sizes.features
    forward = sizes.layers * d * (24 * d + 2 * sizes.positions) + 2 * sizes.vocabulary * d
    step = pipeline + moved / pace
    ranks = replicas * at.tp * stages
    return {
        "days": num_tokens / tokens * step / 24 / 3600,
        "mfu": 3 * forward * tokens / (ranks * machine.operations * step),
        "seconds": step,
        "sums": moved / pace,
        "idle": idle / pipeline,
    }
