"""The watched step of lecture 06 on paper: two ranks, layers that sleep, one slow link. Pure.

The link serves in the order in which it is asked. On two ranks a gather or a reduce-scatter moves
half a layer, and an all-reduce a whole one.
"""

from __future__ import annotations

NUM_LAYERS, FORWARD, BACKWARD = 6, 0.015, 0.04  # seconds a layer
GATHER, REDUCE = 0.01, 0.01  # seconds of the link a layer
WATCHED = (
    "data parallel",
    "stage 1",
    "stage 2",
    "stage 3",
    "stage 3, no prefetch",
    "stage 3, kept",  # its weights stay for backward
)


def step_on_paper(
    variant: str, gather: float = GATHER, reduce: float = REDUCE
) -> list[tuple[str, int, float, float]]:
    """What one rank computes, and what travels: the fields of `byhand.figures.Span`.

    variant: one of WATCHED. gather, reduce: seconds of the link a layer; an all-reduce takes both.

    Raises:
        ValueError: there is no such variant.
    """
    check_variant(variant)
    ahead, spans = 1 if variant == "stage 3, no prefetch" else 2, []
    whole = not variant.startswith("stage 3")  # the weights, all the time
    summing = "all_reduce" if variant == "data parallel" else "reduce_scatter"
    reducing = gather + reduce if summing == "all_reduce" else reduce
    clock = link = 0.0
    layers = list(range(NUM_LAYERS))
    for kind, seconds, order in ("forward", FORWARD, layers), ("backward", BACKWARD, layers[::-1]):
        kept = whole or (variant, kind) == ("stage 3, kept", "backward")
        ready = dict.fromkeys(layers, 0.0) if kept else {}
        for place, layer in enumerate(order):
            for wanted in order[place : place + ahead]:
                if wanted not in ready:
                    ready[wanted] = link = max(clock, link) + gather
                    spans.append(("all_gather", wanted, link - gather, link))
            clock = max(clock, ready[layer]) + seconds
            spans.append((kind, layer, clock - seconds, clock))
            if kind == "backward" and variant != "stage 1":
                link = max(clock, link) + reducing
                spans.append((summing, layer, link - reducing, link))
    return spans + _after_backward(variant, max(clock, link), gather, reduce)


def check_variant(variant: str) -> None:
    """Accept one of WATCHED.

    Raises:
        ValueError: it is none of them.
    """
    if variant not in WATCHED:
        there = ", ".join(map(repr, WATCHED))
        raise ValueError(f"no variant is called {variant!r}; there are {there}")


def _after_backward(
    variant: str, link: float, gather: float, reduce: float
) -> list[tuple[str, int, float, float]]:
    """What stages 1 and 2 send one after the other, from `link` on, around the optimizer's step."""
    sent = [("reduce_scatter", reduce)] if variant == "stage 1" else []
    sent += [("all_gather", gather)] if variant in ("stage 1", "stage 2") else []
    spans = []
    for op, seconds in sent:
        for layer in range(NUM_LAYERS):
            spans.append((op, layer, link, link + seconds))
            link += seconds
    return spans
