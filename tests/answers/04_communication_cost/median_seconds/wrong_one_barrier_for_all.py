"""All ranks meet once, and then drift."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    for _ in range(warm_up):
        machine.call()
    machine.wait()
    seconds = torch.zeros(repetitions, dtype=torch.float64)
    machine.barrier()
    for number in range(repetitions):
        start = machine.clock()
        machine.call()
        machine.wait()
        seconds[number] = machine.clock() - start
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.median().item()
