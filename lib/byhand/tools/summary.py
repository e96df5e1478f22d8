"""What a run's calls came to: by operation, and who waited for whom. Calls in, text out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from byhand.runtime.errors import table
from byhand.runtime.ledger import Event
from byhand.words import counted, num_bytes_text

MOST_PAIRS = 3  # of ranks, one waiting for the other
LEAST_SHARE = 0.01  # of a rank's time: who waited less is not named
HEADER = ("operation", "calls", "sent", "waited", "exposed")
LEGEND = (
    "waited: seconds that a rank, on average, stood still until the last of the others called;"
    " exposed: then, until it went on"
)


@dataclass
class Row:
    """One operation's calls, of all ranks."""

    calls: int = 0
    sent_bytes: int = 0
    waited: float = 0.0  # for the last rank to call, too
    exposed: float = 0.0  # stood still after that
    unseen: int = 0  # calls that nobody saw a rank wait for


@dataclass
class Tally:
    """The sums; a call is told once, when it is over."""

    rows: dict[str, Row] = field(default_factory=lambda: defaultdict(Row))
    pairs: dict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))

    def add(self, call: Event) -> None:
        """Count a call."""
        row, waited = self.rows[call.op], call.waited_for_others
        row.calls += 1
        row.sent_bytes += call.sent_bytes
        row.waited += waited
        row.exposed += call.waited - waited
        row.unseen += call.wait_start is None
        if call.awaited is not None and call.awaited != call.rank:
            self.pairs[call.rank, call.awaited] += waited


def summary(tally: Tally, spans: Sequence[tuple[float, float]]) -> str:
    """Text for a run of these spans, (start, end) by rank; its seconds are a rank's on average."""
    seconds = max(end for _, end in spans) - min(start for start, _ in spans)
    head = f"{counted(len(spans), 'rank')}, {seconds:.2f} s"
    if not tally.rows:
        return f"{head}, no call on a group"
    total = sum(row.sent_bytes for row in tally.rows.values())
    rows = [_cells(op, row, len(spans)) for op, row in sorted(tally.rows.items(), key=_most_bytes)]
    lines = [f"{head}, {num_bytes_text(total)} sent by all ranks together", table(HEADER, rows)]
    lines += [LEGEND, *_pairs(tally, spans)]
    return "\n".join(lines)


def _most_bytes(named: tuple[str, Row]) -> int:
    return -named[1].sent_bytes


def _cells(op: str, row: Row, num_ranks: int) -> tuple[str, ...]:
    is_seen = row.unseen < row.calls
    seconds = [f"{s / num_ranks:.3f} s" if is_seen else "–" for s in (row.waited, row.exposed)]
    return (op, f"{row.calls:,}", num_bytes_text(row.sent_bytes), *seconds)


def _pairs(tally: Tally, spans: Sequence[tuple[float, float]]) -> list[str]:
    """Sentences: who waited for whom, the longest first."""
    longest = sorted(tally.pairs.items(), key=lambda pair: -pair[1])[:MOST_PAIRS]
    lines = []
    for (rank, awaited), seconds in longest:
        share = seconds / ((spans[rank][1] - spans[rank][0]) or 1.0)
        if share >= LEAST_SHARE:
            lines.append(
                f"rank {rank} waited {seconds:.3f} s for rank {awaited}, {share:.0%} of its time"
            )
    return lines or ["no rank waited long for another"]
