"""Many cases in one launch: barriers, which send nothing, part them in its ledger."""

from collections import Counter, defaultdict

from byhand.runtime import Ledger, Run


def parted(run: Run) -> list[Ledger]:
    """What the ranks called before their first barrier, between it and the second, and so on."""
    found, seen = defaultdict(list), Counter()
    for event in run.ledger.events:
        if event.op == "barrier":
            seen[event.rank] += 1
        else:
            found[seen[event.rank]].append(event)
    return [Ledger(found[number]) for number in range(max(seen.values()) + 1)]
