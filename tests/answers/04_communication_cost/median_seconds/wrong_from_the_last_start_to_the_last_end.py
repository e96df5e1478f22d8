"""The lecture's timer: from the last start to the last end, on clocks that do not agree."""


def median_seconds(machine, warm_up: int, repetitions: int) -> float:
    for _ in range(warm_up):
        machine.call()
    machine.wait()
    marks = torch.zeros(2, repetitions, dtype=torch.float64)
    for number in range(repetitions):
        machine.barrier()
        marks[0, number] = machine.clock()
        machine.call()
        machine.wait()
        marks[1, number] = machine.clock()
    dist.all_reduce(marks, dist.ReduceOp.MAX)
    return (marks[1] - marks[0]).median().item()
