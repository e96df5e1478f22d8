"""In exact fractions; a group's calls, sorted, are cut into chunks of as many as it has ranks."""

from fractions import Fraction


def blame(events):
    by_group, found = {}, {}
    for event in sorted(events, key=lambda event: (event.group, event.start)):
        by_group.setdefault(event.group, []).append((event.rank, Fraction(event.start)))
        found[event.rank] = Fraction(0)
    for group, calls in by_group.items():
        for first in range(0, len(calls), len(group)):
            chunk = calls[first : first + len(group)]
            late, moment = chunk[-1]
            found[late] += moment - chunk[0][1]
            for rank, start in chunk:
                found[rank] -= moment - start
    return found
