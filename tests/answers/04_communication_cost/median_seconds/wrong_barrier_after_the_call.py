"""As the usual snippet: a barrier after the call, inside the time."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    for _ in range(warm_up):
        machine.call()
    machine.wait()
    seconds = torch.zeros(repetitions, dtype=torch.float64)
    for number in range(repetitions):
        start = machine.clock()
        machine.call()
        machine.wait()
        machine.barrier()
        seconds[number] = machine.clock() - start
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.median().item()
