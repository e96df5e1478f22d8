"""The mean without the fastest and the slowest: one bad repetition of five still counts."""


def median_seconds(machine, warm_up, repetitions):
    for _ in range(warm_up):
        machine.call()
    machine.wait()
    seconds = torch.zeros(repetitions, dtype=torch.float64)
    for number in range(repetitions):
        machine.barrier()
        start = machine.clock()
        machine.call()
        machine.wait()
        seconds[number] = machine.clock() - start
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.sort().values[1:-1].mean().item()
