"""The barrier follows each call, so nothing comes before the first."""


def median_seconds(machine, warm_up, repetitions):
    times = []
    for _ in range(warm_up + repetitions):
        start = machine.clock()
        machine.call()
        machine.wait()
        times.append(machine.clock() - start)
        machine.barrier()
    seconds = torch.tensor(times[warm_up:], dtype=torch.float64)
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.median().item()
