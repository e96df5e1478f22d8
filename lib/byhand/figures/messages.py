"""Who sent to whom, in which round."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from byhand.figures import pen, style
from byhand.words import counted, num_bytes_text


class Message(NamedTuple):
    """One send and the recv that took it. `step` is 1 for a message that waits for no other."""

    sender: int
    receiver: int
    num_bytes: int
    step: int


def message_diagram(
    events: Iterable,
    num_ranks: int,
    title: str | None = None,
    label: Callable[[int, int], object] = lambda sender, step: "",
    num_rounds: int = 1,
    halves: bool = False,
    owner: Callable[[int, int], int | None] = lambda sender, step: sender,
) -> style.CourseFigure:
    """A row per rank, a column per round, an arrow per message, in its owner's colour.

    events: a run's ledger.events. A message's round is one more than the longest chain of messages
    that its sender or its receiver had to finish first. So the columns show what depends on what,
    not seconds. `label` says, of (sender, round), what is written where an arrow begins.
    num_rounds: the least to leave room for, so that two pictures have one scale. halves: whether a
    line parts the first half of the rounds from the second. owner: of (sender, round), whose data
    a message carries; where it is None, the arrow is faint.
    """
    messages = find_messages(events)
    num_steps = max((message.step for message in messages), default=0)
    width = max(num_steps, num_rounds)
    if title is None:
        total = num_bytes_text(sum(message.num_bytes for message in messages))
        title = (
            f"{counted(len(messages), 'message')}, {total} in all, {counted(num_steps, 'round')}"
        )
    rounds = [f"round {step + 1}" for step in range(width)]
    with style.plot(0.7 + 0.42 * num_ranks, title) as (figure, axes):
        _draw_lines(axes, num_ranks, rounds)
        if halves:
            look = {"linestyle": (0, (3, 3)), "linewidth": 1, "zorder": 0}
            axes.axvline(num_steps / 2 - 0.05, color=style.INK, **look)
        for message in messages:
            sent = message.sender, message.step
            whose, tail = owner(*sent), (message.step - 0.85, message.sender)
            colour = style.FAINT if whose is None else style.rank_colour(whose)
            pen.arrow(axes, tail, (message.step - 0.15, message.receiver), colour, 1.8)
            pen.badge(axes, tail, str(label(*sent)), colour)
    return figure


def _draw_lines(axes: Axes, num_ranks: int, rounds: Sequence[str]) -> None:
    pen.rows(axes, pen.ranks(num_ranks))
    axes.set_xlim(0, len(rounds))
    axes.set_xticks([number + 0.5 for number in range(len(rounds))], rounds)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines["bottom"].set_visible(False)
    axes.hlines(range(num_ranks), 0, len(rounds), color=style.FAINT, linewidth=1, zorder=0)


def find_messages(events: Iterable) -> list[Message]:
    """Every send matched with its recv, in order of step, then sender.

    Receives from any rank take what no other receive does, in order.
    """
    events = list(events)
    under_way = defaultdict(list)  # to a rank, with a tag: sends
    for event in events:
        if event.op == "send":
            under_way[event.peer, event.tag].append(event)
    pairs = []
    receives = [event for event in events if event.op == "recv"]
    for receive in sorted(receives, key=lambda event: event.peer is None):
        sends = under_way[receive.rank, receive.tag]
        if send := next((send for send in sends if receive.peer in (send.rank, None)), None):
            sends.remove(send)
            pairs.append((send, receive))
    pairs.sort(key=lambda pair: max(call.start for call in pair))
    found = [
        Message(send.rank, recv.rank, send.payload_bytes, step)
        for (send, recv), step in zip(pairs, _steps(pairs), strict=True)
    ]
    return sorted(found, key=lambda message: (message.step, message.sender))


def _steps(pairs: list[tuple]) -> list[int]:
    """For each (send, recv): one more than the latest step of a pair that one of its ranks ended
    before it began this one. Pairs come in the order in which both ranks had called."""
    steps: list[int] = []
    for pair in pairs:
        earlier = [s for s, other in zip(steps, pairs, strict=False) if _precedes(other, pair)]
        steps.append(1 + max(earlier, default=0))
    return steps


def _precedes(other: tuple, pair: tuple) -> bool:
    """Whether a rank was seen to end its part of `other` before it began that of `pair`."""
    return any(
        done.rank == begun.rank and done.start < done.end <= begun.start
        for done in other
        for begun in pair
    )
