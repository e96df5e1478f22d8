"""The slowest rank is found after each repetition."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    slowest = []
    for number in range(warm_up + repetitions):
        machine.wait()
        machine.barrier()
        start = machine.clock()
        machine.call()
        machine.wait()
        taken = torch.tensor([machine.clock() - start], dtype=torch.float64)
        dist.all_reduce(taken, op=dist.ReduceOp.MAX)
        slowest += [taken.item()] if number >= warm_up else []
    return sorted(slowest)[repetitions // 2]
