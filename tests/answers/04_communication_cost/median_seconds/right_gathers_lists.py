"""Times in plain lists, gathered as objects; the slowest by hand."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    times = []
    for number in range(-warm_up, repetitions):
        machine.barrier()
        start = machine.clock()
        machine.call()
        machine.wait()
        if number >= 0:
            times.append(machine.clock() - start)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, times)
    return statistics.median(max(together) for together in zip(*everyone, strict=True))
