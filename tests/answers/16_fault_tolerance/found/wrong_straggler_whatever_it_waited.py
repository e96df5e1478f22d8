"""The straggler is said to be the rank that made others wait longest, whatever it waited itself."""


def straggler(events):
    made, calls = {}, {}
    for event in sorted(events, key=lambda event: event.start):
        number = made[event.rank, event.group] = made.get((event.rank, event.group), 0) + 1
        calls.setdefault((event.group, number), []).append(event)
    found = {}
    for together in calls.values():
        seconds = together[-1].start - together[0].start
        found[together[-1].rank] = found.get(together[-1].rank, 0) + seconds
    return max(found, key=found.get)
