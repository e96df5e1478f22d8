"""Which layout of the ranks is fastest, in your hands: predictions only, nothing is launched."""

from __future__ import annotations

import ipywidgets

from byhand.communication_cost import AlphaBeta
from byhand.figures import layout_seconds
from byhand.hybrid_parallel.cost import Machine, Prediction, Sizes, predict
from byhand.hybrid_parallel.layouts import layouts
from byhand.tools.widgets import explorer

BILLION = Sizes(50304, 1024, 2048, 16, 24, itemsize=2)  # 1.3 billion parameters, in two bytes each
FLOPS, NVLINK = 200e12, AlphaBeta(1e-5, 1 / 300e9)  # what a device of 2023 reaches in practice


def fastest_layouts(
    world_size: int, ranks_per_host: int, between: float, num_sequences: int, count: int = 10
) -> list[tuple[str, Prediction]]:
    """The layouts of a GPT of 1.3 billion parameters that are predicted to be fastest, by name.

    Its halves of blocks are shared equally by the stages; a host's ranks share one link.

    Raises:
        ValueError: no layout has a sequence for each replica.
    """
    d = BILLION.num_features
    forward = 12 * d * d * BILLION.num_positions / FLOPS  # 6 d² weights in half a block
    lines = dict.fromkeys((2**k for k in range(1, 20)), NVLINK)
    machine = Machine(forward, lines, between, ranks_per_host)
    found = []
    for layout in layouts(world_size):
        fits = 2 * BILLION.num_blocks % layout.pp == 0 and BILLION.num_heads % layout.tp == 0
        if fits and num_sequences >= layout.dp:
            schedule = layout.schedule(num_sequences)
            found.append(
                (str(layout), predict(BILLION, layout.groups, machine, schedule, num_sequences))
            )
    if not found:
        raise ValueError(f"{num_sequences} sequences are too few for {world_size} ranks")
    return sorted(found, key=lambda pair: pair[1].seconds)[:count]


def layout_explorer(world_size: int = 64, gigabytes_per_second: float = 25) -> ipywidgets.VBox:
    """Choose ranks, ranks per host, the host's link and the batch; see the ten best layouts.

    A GPT of 1.3 billion parameters, predicted: memory is not looked at.
    """
    choices = {
        "ranks": ([8, 16, 32, 64, 128], world_size),
        "per host": ([1, 2, 4, 8, 16], 8),
        "link GB/s": ([1, 5, 25, 100, 400], gigabytes_per_second),
        "sequences": ([64, 256, 512], 256),
    }
    sliders = [
        ipywidgets.SelectionSlider(
            options=options, value=value, description=name, continuous_update=False
        )
        for name, (options, value) in choices.items()
    ]
    return explorer([sliders[:2], sliders[2:]], draw_layouts)


def draw_layouts(
    world_size: int, ranks_per_host: int, gigabytes_per_second: float, num_sequences: int
) -> tuple[bytes, int, str]:
    """The ten fastest layouts as a picture (PNG), its width, and a sentence; or no picture, why."""
    between = 1e9 * gigabytes_per_second
    try:
        best = fastest_layouts(world_size, ranks_per_host, between, num_sequences)
    except ValueError as error:
        return b"", 0, str(error)
    png, size = layout_seconds({name: (p.parts, None) for name, p in best})._repr_png_()
    name, first = best[0]
    return png, size["width"], f"With {name} a rank idles {first.idle_fraction:.0%} of the step."
