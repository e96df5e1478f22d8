"""Nothing is called before the clock starts."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    seconds = torch.zeros(repetitions, dtype=torch.float64)
    for number in range(repetitions):
        machine.barrier()
        start = machine.clock()
        machine.call()
        machine.wait()
        seconds[number] = machine.clock() - start
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.median().item()
