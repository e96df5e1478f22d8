"""Takes the all-reduce of each time for the barrier before the next call."""


def median_seconds(machine, warm_up, repetitions):
    slowest = []
    for _ in range(warm_up + repetitions):
        start = machine.clock()
        machine.call()
        machine.wait()
        taken = torch.tensor(machine.clock() - start, dtype=torch.float64)
        dist.all_reduce(taken, dist.ReduceOp.MAX)
        slowest.append(taken.item())
    return statistics.median(slowest[warm_up:])
