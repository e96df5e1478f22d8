"""The straggler is said to be the rank that came last most often."""


def straggler(events):
    made, last = {}, {}
    for event in sorted(events, key=lambda event: event.start):
        number = made[event.rank, event.group] = made.get((event.rank, event.group), 0) + 1
        last[event.group, number] = event.rank
    late = list(last.values())
    return max(late, key=late.count)
