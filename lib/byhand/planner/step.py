"""One training step on paper: seconds by part, bytes by kind, and whether it fits. Pure.

    m micro-batches pass the slowest stage one after another        products, attention, small,
                                                                    again, head, tp, cp, ep, pp
    the first waits for all stages before it, the last likewise     idle: (p - 1)/v of a turn
    what gradients' messages do not hide behind computing           gradients
    the optimizer's bytes, and what a step costs whatever it does   optimizer, other

The seconds add up. `columns` answers for a whole table of layouts, `step` for one.
Left out: stragglers, data loading, checkpoints, an allocator in a card that is nearly full (a
published run took 20 % longer there). Of models with experts the seconds are a floor: tokens are
thought to be routed evenly and at no cost, and published runs took 1.1 to 3 times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from byhand.costs.layout import Layout
from byhand.costs.model import Model
from byhand.planner import computing, memory, messages
from byhand.planner.case import Case
from byhand.planner.machines import MACHINES, Machine
from byhand.planner.runs import most
from byhand.planner.software import SOFTWARE, Software, error
from byhand.planner.table import Column, Parts, table, total

PRECISIONS = "bf16", "fp8"
REDUCE = {"bf16": 2, "fp32": 4}


class Row(Mapping[str, float]):
    """One layout's numbers, by name, as it stands in the columns of many."""

    __slots__ = "columns", "number"

    def __init__(self, columns: Mapping[str, Column], number: int):
        """Of that row."""
        self.columns, self.number = columns, number

    def __getitem__(self, name: str) -> float:
        """A column's."""
        return float(self.columns[name][self.number])

    def __iter__(self) -> Iterator[str]:
        """The columns' names."""
        return iter(self.columns)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.columns)

    def __repr__(self) -> str:
        """As a dict's."""
        return repr(dict(self))


@dataclass(frozen=True)
class Step:
    """A step of one layout. parts: seconds. memory: bytes of the fullest rank, by kind.

    error: what published steps of this software that it was not fitted to missed by, on average;
    UNSEEN where its constants are borrowed from other software or another GPU.

    >>> from byhand.costs import Layout, gpt
    >>> model = gpt(32, 4096, 32, num_tokens=32000, num_positions=4096, gated=True)
    >>> one = step(model, Layout(dp=8), "h100-80gb", 64)
    >>> one.fits, f"{one.num_bytes / 1e9:.0f} GB of {one.limit / 1e9:.0f}"
    (False, '164 GB of 86')
    """

    parts: Mapping[str, float]
    memory: Mapping[str, float]
    limit: float
    mfu: float
    error: float

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return sum(self.parts.values())

    @property
    def num_bytes(self) -> float:
        """Of the fullest rank."""
        return sum(self.memory.values())

    @property
    def fits(self) -> bool:
        """Whether the fullest rank has room."""
        return self.num_bytes <= self.limit


class Columns(NamedTuple):
    """What a step takes and holds under each layout of a table."""

    parts: Parts
    memory: Parts

    @property
    def seconds(self) -> Column:
        """Of whole steps."""
        return total(self.parts)

    @property
    def num_bytes(self) -> Column:
        """Of the fullest ranks."""
        return total(self.memory)


def step(
    model: Model,
    layout: Layout,
    machine: Machine | str,
    num_sequences: int,
    *,
    precision: str = "bf16",
    software: Software | str = "nemo",
    compiled: bool = True,
    reduce_dtype: str | None = None,
) -> Step:
    """Time and memory of one training step.

    machine, software: names, as MACHINES and SOFTWARE have them, or objects. reduce_dtype: of
    gradients as they are summed, "bf16" or "fp32"; the software's own where None.

    Raises:
        ValueError: an unknown name, sequences or heads that the layout cannot share out, more
            chunks than blocks, a precision that the machine or the software has not.

    >>> from byhand.costs import Layout, gpt
    >>> model = gpt(96, 12288, 96, num_tokens=51200, num_positions=2048)
    >>> layout = Layout(dp=8, tp=8, pp=16, sequence=True, recompute="selective")
    >>> one = step(model, layout, "a100-80gb", num_sequences=1024)
    >>> f"{one.seconds:.1f} s, {one.num_bytes / 1e9:.0f} GB, {one.mfu:.0%}"
    '12.9 s, 35 GB, 54%'
    """
    layout.num_micro_batches(num_sequences)
    case = ask(model, [layout], machine, num_sequences, precision, software, compiled, reduce_dtype)
    check(case, layout)
    (found,) = picked(case, columns(case))
    return found[1]


def ask(
    model: Model,
    layouts: list[Layout],
    machine: Machine | str,
    num_sequences: int,
    precision: str = "bf16",
    software: Software | str = "nemo",
    compiled: bool = True,
    reduce_dtype: object = None,
) -> Case:
    """The same arguments as a Case: names looked up, and refused in a sentence."""
    on: Machine = find(machine, MACHINES, "machine")
    by: Software = find(software, SOFTWARE, "software")
    if precision not in on.peak:
        has = " and ".join(on.peak)
        raise ValueError(f"precision is {precision!r}: {on.name} has {has}")
    if (on.kind, precision) not in by.products:
        known = ", ".join(sorted(" in ".join(pair) for pair in by.products))
        raise ValueError(
            f"nothing is known of {by.name} on {on.kind} in {precision}, only on {known}"
        )
    name = str(reduce_dtype).removeprefix("torch.").replace("float", "fp").replace("bfp", "bf")
    if reduce_dtype and name not in REDUCE:
        raise ValueError(f"reduce_dtype is {reduce_dtype!r}; known are bf16 and fp32")
    num_bytes = REDUCE[name] if reduce_dtype else by.reduce_bytes
    given = on, by, num_sequences, precision, compiled, num_bytes
    return Case(model, table(layouts), *given)


def find(asked: Any, known: Mapping[str, Any], what: str) -> Any:
    """The one of that name, or the first whose name goes on after it: h100 is h100-80gb; no name is
    taken as it is."""
    if not isinstance(asked, str):
        return asked
    names = [name for name in known if name == asked or name.startswith(f"{asked}-")]
    if not names:
        raise ValueError(f"no {what} is called {asked!r}; there are {', '.join(known)}")
    return known[asked if asked in known else names[0]]


def check(case: Case, layout: Layout) -> None:
    """Refuse what the layout cannot share out."""
    s = case.sizes
    if s.heads % layout.tp:
        raise ValueError(f"{s.heads} heads cannot be shared by tp {layout.tp}: it must divide them")
    if layout.pp * layout.chunks > most(s.blocks, layout.chunks):
        raise ValueError(f"{s.blocks} blocks cannot make {layout.pp * layout.chunks} chunks")
    if (s.experts and s.experts % layout.ep) or (not s.experts and layout.ep > 1):
        raise ValueError(f"{s.experts} experts cannot be shared by ep {layout.ep}")


def columns(case: Case) -> Columns:
    """Seconds by part and bytes by kind of every layout of the case."""
    pipeline = turns(case)
    parts = {**pipeline, **afterwards(case, total(pipeline))}
    every = {name: np.broadcast_to(column, len(case.at)) for name, column in parts.items()}
    return Columns(every, memory.held(case))


def block(case: Case) -> Parts:
    """Seconds of a micro-batch's turn, there and back, with one block."""
    square = computing.attention(case)
    return {
        "products": 3 * computing.products(case),
        "attention": square[0] + square[1],
        "small": 2 * computing.small(case),
        "again": computing.again(case),
        "tp": messages.tensor(case),
        "cp": messages.context(case),
        "ep": messages.experts(case),
    }


def turns(case: Case) -> Parts:
    """Of all micro-batches on the stage that takes longest, and how long it idles."""
    at, m, each = case.at, case.micro_batches, block(case)
    turn, head = total(each), computing.head(case)
    first, last = (blocks * turn for blocks in case.blocks)
    slow = (last + head > first) | (at.pp == 1)  # the last stage, which has the head
    blocks = np.where(slow & (at.pp > 1), case.blocks[1], case.blocks[0])
    busy = {name: m * blocks * seconds for name, seconds in each.items()}
    busy["head"] = np.where(slow, m * head, 0.0)
    show = np.where(at.chunks > 1, 1 - case.software.hides_sends, 1.0)
    busy["pp"] = 2 * messages.hop(case) * (m * at.chunks * show + at.pp - 1)
    mean = case.sizes.blocks / at.pp * turn
    return busy | {"idle": (at.pp - 1) / at.chunks * mean}


def afterwards(case: Case, pipeline: Column) -> Parts:
    """What shows of gradients' messages, the optimizer, and the rest."""
    at, software = case.at, case.software
    dense, experts = memory.parameters(case)
    sent = messages.gradients(case, dense, experts)
    last_turn = pipeline / (case.micro_batches + (at.pp - 1) / at.chunks)
    hidden = np.minimum(sent, np.where(at.zero >= 2, pipeline, last_turn))
    ranks = np.where(at.zero > 0, at.dp * at.cp, 1)
    owned = dense / ranks + experts / np.where(at.zero > 0, at.dp * at.cp // at.ep, 1)
    return {
        "gradients": sent - software.hides_gradients * hidden + messages.table_of_tokens(case),
        "optimizer": software.optimizer * owned / case.machine.memory_rate,
        "other": np.full(len(at), software.step_seconds),
    }


def mfu(case: Case, seconds: Column) -> Column:
    """Model operations a second, of the peak: 3 forwards, attention over half the square."""
    model, ranks = case.model, case.at.dp * case.at.tp * case.at.pp * case.at.cp
    halves = sum(part.flops - part.square / 2 for part in model.parts)
    flops = 3 * case.num_sequences * model.num_positions * halves
    return flops / ranks / case.machine.peak[case.precision] / seconds


def picked(case: Case, found: Columns, limit: float | None = None) -> Iterator[tuple[Layout, Step]]:
    """Every layout of the case with its Step. limit: bytes of a rank; the machine's where None."""
    limit = case.machine.memory if limit is None else limit
    share, missed = (
        mfu(case, found.seconds),
        error(case.software, case.machine.kind, case.precision),
    )
    for number in range(len(case.at)):
        parts, kinds = Row(found.parts, number), Row(found.memory, number)
        yield case.at.layout(number), Step(parts, kinds, limit, float(share[number]), missed)
