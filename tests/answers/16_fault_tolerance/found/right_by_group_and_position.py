"""Lists by group and rank, cut across; counts by Counter."""

from collections import Counter, defaultdict


def blame(events):
    starts = defaultdict(lambda: defaultdict(list))
    for event in events:
        starts[event.group][event.rank].append(event.start)
    found = Counter()
    for by_rank in starts.values():
        ranks = list(by_rank)
        for moments in zip(*(sorted(by_rank[rank]) for rank in ranks)):
            late = ranks[moments.index(max(moments))]
            found.update({rank: moment - max(moments) for rank, moment in zip(ranks, moments)})
            found[late] += max(moments) - min(moments)
    return dict(found)


def straggler(events):
    return sorted((seconds, rank) for rank, seconds in blame(events).items())[-1][1]


def wrong_since(prints, groups):
    found = {}
    for k in reversed(range(len(prints))):
        for group in groups:
            value, count = Counter(prints[k][rank] for rank in group).most_common(1)[0]
            right = value if count > len(group) / 2 else None
            found |= {rank: k for rank in group if prints[k][rank] != right}
    return found
