"""Why the fastest layout wins, what comes second, and what would change that. Pure.

A reason is found by asking again: the search is run with another network, memory or batch, and with
each rate of the network and each constant of the software a tenth larger. What leaves the winner's
degrees as they are is no reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from byhand.costs.layout import Layout
from byhand.costs.model import Model
from byhand.planner.machines import MACHINES, Machine
from byhand.planner.search import PLAN, Found, search
from byhand.planner.software import SOFTWARE, Software
from byhand.planner.step import Step, find

MORE = 1.1  # a constant, for one that is a tenth smaller
WORDS = {
    "products": "the blocks' products",
    "attention": "attention",
    "small": "element-wise work",
    "again": "computing again",
    "tp": "tensor parallelism's messages",
    "cp": "the ring of context parallelism",
    "ep": "rows on their way to experts",
    "head": "the head and the loss",
    "pp": "messages between stages",
    "idle": "the pipeline's bubble",
    "gradients": "gradients that show",
    "optimizer": "the optimizer",
    "other": "the rest",
}
RATES = {"between": "the network cards' rate", "inside": "NVLink's rate"}
CONSTANTS = {
    "products": "the products' share of the peak",
    "attention": "attention's share of the peak",
    "operand": "the products' bytes",
    "traffic": "element-wise bytes",
    "tensor": "tp's seconds that show",
    "hides_gradients": "the share of gradients' messages that hides",
    "attention_backward": "attention's backward",
    "loss": "the loss's bytes",
    "optimizer": "the optimizer's bytes",
}


@dataclass(frozen=True)
class Question:
    """What was searched for, so that it can be asked again in another way."""

    model: Model
    machine: Machine
    num_ranks: int
    num_sequences: int
    software: Software
    precision: str = "bf16"
    memory: float | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        machine: Machine | str,
        num_ranks: int,
        num_sequences: int,
        *,
        software: Software | str = "nemo",
        **settings: Any,
    ) -> Question:
        """The same arguments as search takes."""
        at, by = find(machine, MACHINES, "machine"), find(software, SOFTWARE, "software")
        return cls(model, at, num_ranks, num_sequences, by, **settings)

    def found(self, one_each: bool = False) -> Found:
        """All layouts that fit, fastest first; or one of each tp, pp and ep."""
        return search(**vars(self), one_each=one_each)


def degrees(layout: Layout) -> tuple[int, ...]:
    """What makes a plan another plan: tp, pp and ep. (dp and cp divide what is left.)"""
    return tuple(getattr(layout, name) for name in PLAN)


def runner_up(found: Found) -> tuple[Layout, Step] | None:
    """The fastest of other degrees than the winner's."""
    best = degrees(found[0][0])
    return next((each for each in found if degrees(each[0]) != best), None)


def bounds(step: Step, most: int = 3) -> list[tuple[str, float]]:
    """The largest parts of a step, and their shares of its seconds."""
    shares = {name: seconds / step.seconds for name, seconds in step.parts.items()}
    return sorted(shares.items(), key=lambda item: -item[1])[:most]


def difference(best: Step, other: Step) -> list[tuple[str, float]]:
    """Seconds that the other takes more of each part, the largest first, either way."""
    more = {name: other.parts[name] - best.parts[name] for name in best.parts}
    return sorted(more.items(), key=lambda item: -abs(item[1]))


def changes(question: Question, found: Found) -> Iterator[tuple[str, str]]:
    """(what is changed, what wins then), for everything that could have been otherwise."""
    machine, batch = question.machine, question.num_sequences
    limit = machine.memory if question.memory is None else question.memory
    others: dict[str, Callable[[], Question]] = {
        "cards twice as fast": lambda: _on(question, 2 * machine.between),
        "cards half as fast": lambda: _on(question, machine.between / 2),
        "twice the memory": lambda: replace(question, memory=2 * limit),
        "half the memory": lambda: replace(question, memory=limit / 2),
        "twice the batch": lambda: replace(question, num_sequences=2 * batch),
    }
    if batch > 1:
        others["half the batch"] = lambda: replace(question, num_sequences=batch // 2)
    for what, ask in others.items():
        yield what, _verdict(found, ask)


def hangs_on(question: Question, found: Found) -> list[tuple[str, float, bool]]:
    """Of each constant: what a tenth more of it does to the winner's seconds, and to its place.

    (constant, seconds of the best layout for those of before, whether other degrees win), the most
    important first.
    """
    before, rows = found[0][1].seconds, []
    for name, other in questions(question).items():
        best, step = other.found(one_each=True)[0]
        unlike = degrees(best) != degrees(found[0][0])
        rows.append((name, step.seconds / before - 1, unlike))
    return sorted(rows, key=lambda row: (-row[2], -abs(row[1])))


def questions(question: Question, factor: float = MORE) -> Mapping[str, Question]:
    """The question with each rate of the network, and each constant, so much larger in turn."""
    networks = {
        RATES[rate]: replace(
            question,
            machine=replace(question.machine, **{rate: factor * getattr(question.machine, rate)}),
        )
        for rate in RATES
    }
    others = turned(question.software, factor).items()
    return networks | {CONSTANTS[name]: replace(question, software=by) for name, by in others}


def turned(software: Software, factor: float = MORE) -> Mapping[str, Software]:
    """The software with each of its constants so much larger in turn; shares stay below 1."""
    single = "traffic", "tensor", "hides_gradients", "attention_backward", "loss", "optimizer"
    tables = "products", "attention", "operand"
    more: dict[str, Any] = {
        name: {key: factor * value for key, value in getattr(software, name).items()}
        for name in tables
    }
    more |= {name: factor * getattr(software, name) for name in single}
    more["products"] = {key: min(1.0, share) for key, share in more["products"].items()}
    more["hides_gradients"] = min(1.0, more["hides_gradients"])
    return {name: replace(software, **{name: value}) for name, value in more.items()}


def _on(question: Question, between: float) -> Question:
    return replace(question, machine=replace(question.machine, between=between))


def _verdict(found: Found, ask: Callable[[], Question]) -> str:
    """What wins then, in words."""
    try:
        best, step = ask().found(one_each=True)[0]
    except ValueError as error:
        return str(error)
    if degrees(best) == degrees(found[0][0]):
        return f"the same degrees, {step.seconds:.3g} s"
    return f"{best}, {step.seconds:.3g} s"


def explained(question: Question, found: Found) -> list[str]:
    """The reasons, a line each."""
    (layout, best), second = found[0], runner_up(found)
    parts = ", ".join(f"{WORDS[name]} {share:.0%}" for name, share in bounds(best))
    room = (best.limit - best.num_bytes) / 2**30
    lines = [f"{layout} wins: {parts}; {room:.0f} GiB are left"]
    if second is not None:
        other = second[1]
        what = [f"{WORDS[n]} {more:+.3g} s" for n, more in difference(best, other)[:2] if more]
        late = other.seconds / best.seconds - 1
        tie = "; closer than the planner's error" if late < best.error else ""
        lines.append(f"second: {second[0]}, {late:.1%} slower: {', '.join(what)}{tie}")
    lines += [f"with {what}: {verdict}" for what, verdict in changes(question, found)]
    for name, change, unlike in hangs_on(question, found)[:3]:
        place = "another layout wins" if unlike else "the same degrees win"
        lines.append(f"with a tenth more of {name}: {change:+.1%} seconds, {place}")
    return lines
