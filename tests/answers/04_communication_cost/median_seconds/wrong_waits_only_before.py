"""Waits before the call, and not after it."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    for _ in range(warm_up):
        machine.call()
    machine.wait()
    seconds = torch.zeros(repetitions, dtype=torch.float64)
    for number in range(repetitions):
        machine.wait()
        machine.barrier()
        start = machine.clock()
        machine.call()
        seconds[number] = machine.clock() - start
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.median().item()
