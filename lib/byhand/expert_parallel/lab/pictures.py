"""Pictures of experts: rows that travel, loads by rank, a step's timeline; and loads to drag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from byhand.expert_parallel.exchange import slots_of
from byhand.expert_parallel.lab import Watched, loads_of, popular
from byhand.expert_parallel.placement import Placement, imbalance, in_order, replicated
from byhand.figures import Block, expert_loads, panel_stack, timeline
from byhand.tools.asleep import Stretch, from_zero, stretches

if TYPE_CHECKING:
    import ipywidgets

    from byhand.figures.style import CourseFigure


def by_rank(placement: Placement, loads: Sequence[float]) -> list[dict[int, float]]:
    """What `byhand.figures.expert_loads` draws: for each rank, the rows of each of its experts."""
    copies = [sum(expert in held for held in placement) for expert in range(len(loads))]
    return [{expert: loads[expert] / copies[expert] for expert in held} for held in placement]


def arriving(chosen: Tensor, placement: Placement) -> list[dict[int, int]]:
    """As `by_rank`, of the rows that a step sends: copies take turns, so their shares may differ.

    chosen: of all ranks' tokens, dealt out in order.
    """
    num_ranks = len(placement)
    slots = [slots_of(mine, placement, num_ranks) for mine in chosen.tensor_split(num_ranks)]
    rows = iter(torch.cat(slots).bincount(minlength=sum(map(len, placement))).tolist())
    return [{expert: next(rows) for expert in held} for held in placement]


def travel(chosen: Tensor, placement: Placement) -> CourseFigure:
    """Rows on their way: of each the token's rank, by hue, and its expert, by number.

    chosen: of all ranks' tokens, dealt out in order.
    """
    home = {expert: rank for rank, held in enumerate(placement) for expert in held}
    before = [
        [(expert, rank) for token in mine.tolist() for expert in token]
        for rank, mine in enumerate(chosen.tensor_split(len(placement)))
    ]
    ordered = [sorted(rows, key=lambda row: (home[row[0]], row[0])) for rows in before]
    every = [row for rows in ordered for row in rows]
    after = [[row for row in every if home[row[0]] == rank] for rank in range(len(placement))]
    moments = {"chosen (a frame is a token)": before, "sorted by expert": ordered}
    panels = {
        name: [[Block(i, (r,), f"{e}") for i, (e, r) in enumerate(rows)] for rows in ranks]
        for name, ranks in {**moments, "as they arrive": after}.items()
    }
    least, most = (f(map(len, after)) for f in (min, max))
    title = f"{len(every)} rows to {len(home)} experts: a rank receives {least} to {most}"
    arrows = [
        ("sort by expert", "each added to its token"),
        ("all-to-all", "back: the same splits, exchanged"),
    ]
    return panel_stack(panels, arrows, title, chosen.shape[1])


def step_timeline(watched: Watched, number: int = 0) -> CourseFigure:
    """The timeline of the step under a placement, from its barrier on: forward ends with the third
    all-to-all, which brings back what the experts made, and the step with its last.
    """
    ranks = range(watched.run.world_size)
    at = watched.drawn[number] + 1
    parts = []
    for rank in ranks:
        begin, _, calls = stretches(watched.run, rank)[at]
        own = [call for call in calls if call.op != "barrier"]
        parts.append(Stretch(begin, own[-1].end, own))
    calls, spans = from_zero(parts)
    middle = [call.end for call in calls if (call.rank, call.op) == (0, "all_to_all")][2]
    phases = {"forward": (0.0, middle), "backward": (middle, max(end for _, end in spans))}
    return timeline(calls, spans, phases=phases)


def load_explorer(skew: float = 1.0, world_size: int = 4) -> ipywidgets.VBox:
    """Choose how uneven the router is, how many experts there are, and the spare places.

    Shown is who works how much under three placements. No rank is started.
    """
    from byhand.tools.explorer import explorer, slider

    uneven = slider("skew", float(skew), 0, 2)
    experts, top_k = slider("experts", 16, 8, 64), slider("k", 2, 1, 8)
    ranks, spare = slider("ranks", world_size, 2, 8), slider("spare", world_size, 0, 32)
    few = {"skew": (0.0, 0.5, 1.0, 1.5, 2.0), "experts": (16, 32), "k": (1, 2)}
    few |= {"ranks": (), "spare": (0, 4, 16)}
    return explorer([[uneven, experts, top_k], [ranks, spare]], draw_loads, few)


def draw_loads(
    skew: float, num_experts: int, top_k: int, num_ranks: int, spare: int
) -> tuple[CourseFigure, str]:
    """The three placements, and what a spare place costs."""
    loads = loads_of(popular(2048, num_experts, top_k, skew), num_experts)
    num_slots = min(num_experts + spare, num_experts * num_ranks)
    placements = {
        "in order": in_order(num_experts, num_ranks),
        "by load": replicated(loads, num_ranks, num_experts),
        f"with {num_slots - num_experts} copies": replicated(loads, num_ranks, num_slots),
    }
    panels = {name: by_rank(placement, loads) for name, placement in placements.items()}
    first, *_, last = (imbalance(placement, loads) for placement in placements.values())
    text = (
        f"Experts take {first:.2f} times as long as if even; at best here {last:.2f} times. A rank "
        f"holds up to {max(map(len, placements[list(placements)[-1]]))} experts."
    )
    return expert_loads(panels), text
