"""What a launch asks of its ranks, what it gives back, and how that shows itself to a reader."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byhand.runtime.errors import table
from byhand.runtime.ledger import OPS, Event, Ledger
from byhand.words import counted

if TYPE_CHECKING:
    from byhand.runtime.network.virtual import Traffic, VirtualNetwork

MAX_SHOWN, MAX_PRINTED = 400, 20_000  # characters of a value, and of what one rank printed
GREETING = re.compile(r"^\[Gloo\] Rank \d+ is connected to .*\n", re.MULTILINE)  # of torch 2.10


@dataclass(frozen=True)
class Options:
    """How ranks run a function, as `byhand.launch` says; with `alone` it is called as fn(*args).

    streams: by rank, the descriptors that become its standard output and standard error, which are
    else kept in run.output; a third becomes its standard input. `older`: for programs of hours,
    what is told each call that is too old to be kept; the ledger then has the last ones. None: it
    has all. `may_leave`: a rank whose process ends with status 0 has returned None, as a program
    may; of a function in a notebook that is an error.
    """

    backend: str = "auto"
    deadline: float = 60.0
    threads_per_rank: int = 1
    network: VirtualNetwork | None = None
    setup: bool = True
    memory: bool = False
    alone: bool = False
    streams: Sequence[Sequence[int]] = ()
    older: Callable[[Event], None] | None = None
    may_leave: bool = False


@dataclass(repr=False)
class Run:
    """One finished launch; every list is indexed by rank.

    `results`: what the function returned. `output`: what the rank printed. `ledger`: every
    communication call. `peak_bytes`: the most bytes of tensor storage the rank held at once, of
    tensors among its arguments and of what its operations returned, not of those that came by name
    or inside an object; None unless the launch was made with memory=True.
    `spans`: (start, end) of the function, in seconds since the first rank began. `seconds`: from
    the first rank's beginning to the last one's end. `traffic`: what the kernel counted on the
    links of a virtual network, by host; None on loopback. `loopback_bytes`: what all
    ranks together sent over the loopback of their sandbox, headers and all; None without one.

    >>> def step(rank, world_size):
    ...     print(f"I am rank {rank}")
    ...     total = torch.tensor(rank)
    ...     dist.all_reduce(total)
    ...     return int(total)
    >>> run = launch(step, 3)
    >>> run.results, run.output[2].strip(), run.ledger.count("all_reduce")
    ([3, 3, 3], 'I am rank 2', 3)
    """

    results: list[Any]
    output: list[str]
    ledger: Ledger
    peak_bytes: list[int] | None
    spans: list[tuple[float, float]]
    seconds: float
    backend: str | None
    traffic: Traffic | None = None
    loopback_bytes: int | None = None

    @property
    def printed(self) -> list[str]:
        """What is shown of `output`: its beginning, without gloo's greeting."""
        return [_cut(GREETING.sub("", text), MAX_PRINTED) for text in self.output]

    @property
    def world_size(self) -> int:
        """How many ranks ran."""
        return len(self.results)

    def summary(self) -> str:
        """One line: ranks, time, calls and bytes."""
        calls = [f"{self.ledger.count(op)} × {op}" for op in OPS if self.ledger.count(op)]
        sent = f"{self.ledger.sent_bytes():,} bytes sent" if calls else "no call on a group"
        parts = [counted(self.world_size, "rank"), f"{1e3 * self.seconds:.1f} ms", *calls, sent]
        return " · ".join(parts)

    def __repr__(self) -> str:
        rows = [(str(rank), _short(result)) for rank, result in enumerate(self.results)]
        text = [f"Run: {self.summary()}", table(("rank", "result"), rows)]
        for rank, output in enumerate(self.printed):
            if output:
                text.append(f"rank {rank} printed:\n{output.rstrip()}")
        return "\n".join(text)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row'>rank {rank}</th><td><pre>{html.escape(_short(result))}</pre></td>"
            f"<td><pre>{html.escape(self.printed[rank].rstrip())}</pre></td></tr>"
            for rank, result in enumerate(self.results)
        )
        head = "<tr><td></td><th scope='col'>returned</th><th scope='col'>printed</th></tr>"
        note = f"<p>{html.escape(self.summary())}</p>"
        return f"{_STYLE}<div class='byhand'>{note}<table>{head}{rows}</table></div>"


def blocks_html(run: Run) -> str:
    """Each rank's output (and value, if any) as a labelled block: what `%%ranks` shows."""
    blocks = []
    for rank, (output, value) in enumerate(zip(run.printed, run.results, strict=True)):
        text = output + ("" if value is None else _short(value) + "\n")
        body = html.escape(text.rstrip()) or "<i>printed nothing</i>"
        blocks.append(f"<tr><th scope='row'>rank {rank}</th><td><pre>{body}</pre></td></tr>")
    note = f"<p>{html.escape(run.summary())}</p>"
    return f"{_STYLE}<div class='byhand'><table>{''.join(blocks)}</table>{note}</div>"


def blocks_text(run: Run) -> str:
    """The same as plain text."""
    lines = []
    for rank, (output, value) in enumerate(zip(run.printed, run.results, strict=True)):
        text = output + ("" if value is None else _short(value) + "\n")
        shown = text.rstrip().replace("\n", "\n        ") or "(printed nothing)"
        lines.append(f"rank {rank}  {shown}")
    return "\n".join([*lines, run.summary()])


def _short(value: Any) -> str:
    return _cut(repr(value), MAX_SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text)} characters)"


# No colours: those of the page are right on light and on dark ones.
_STYLE = """<style>
.byhand table { border-collapse: collapse; margin: 0.3em 0; }
.byhand th { text-align: left; vertical-align: top; padding: 2px 14px 2px 0; }
.byhand td { text-align: left; vertical-align: top; padding: 2px 14px 2px 0; }
.byhand pre { margin: 0; white-space: pre-wrap; }
.byhand p { margin: 0.2em 0; font-size: 90%; }
</style>"""
