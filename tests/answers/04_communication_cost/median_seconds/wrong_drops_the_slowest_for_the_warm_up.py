"""Takes the slowest repetitions for the warm-up, and drops as many."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    seconds = torch.zeros(warm_up + repetitions, dtype=torch.float64)
    for number in range(warm_up + repetitions):
        machine.barrier()
        start = machine.clock()
        machine.call()
        machine.wait()
        seconds[number] = machine.clock() - start
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.sort().values[:repetitions].median().item()
