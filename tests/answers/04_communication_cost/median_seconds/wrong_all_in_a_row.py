"""Divides the time of all calls in a row by their number."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    for _ in range(warm_up):
        machine.call()
    machine.wait()
    seconds = torch.zeros(repetitions, dtype=torch.float64)
    start = machine.clock()
    for _ in range(repetitions):
        machine.barrier()
        machine.call()
    machine.wait()
    seconds = torch.tensor([(machine.clock() - start) / repetitions])
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.median().item()
