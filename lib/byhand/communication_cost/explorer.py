"""An explorer of alpha and beta: drag them over what was measured, and see who wins from where."""

from __future__ import annotations

import ipywidgets

from byhand.communication_cost.lab import Sweep
from byhand.communication_cost.model import AlphaBeta, crossover
from byhand.figures import costs
from byhand.figures.costs import seconds_text
from byhand.figures.style import num_bytes_text

RIVALS = ("recursive_doubling", "halving_doubling")
NUM_RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def cost_explorer(measured: Sweep | None = None) -> ipywidgets.VBox:
    """Drag alpha and beta: the ring's line over what was measured, and where a rival crosses it.

    measured: timings of an all-reduce, drawn where the number of ranks is theirs; the sliders start
    at their fit. Starts no rank, so it follows the mouse.
    """
    line = measured.fit().line if measured else AlphaBeta(1e-4, 1e-9)
    alpha = _slider("alpha", line.alpha, -7, -2, "seconds a round")
    beta = _slider("beta", line.beta, -12, -6, "seconds a byte")
    start = measured.num_ranks if measured and measured.num_ranks in NUM_RANKS else 8
    ranks = ipywidgets.SelectionSlider(options=NUM_RANKS, value=start, description="ranks")
    rival = ipywidgets.Dropdown(options=RIVALS, value=RIVALS[0], description="rival")

    def drawn(alpha: float, beta: float, num_ranks: int, rival: str) -> tuple[bytes, int, str]:
        return draw_costs(AlphaBeta(alpha, beta), num_ranks, rival, measured)

    from byhand.tools.widgets import explorer

    return explorer([[alpha, beta], [ranks, rival]], drawn)


def draw_costs(
    line: AlphaBeta, num_ranks: int, rival: str, measured: Sweep | None = None
) -> tuple[bytes, int, str]:
    """The picture (PNG), its width in pixels, and what it says in a sentence."""
    points = {}
    if measured and measured.num_ranks == num_ranks:
        points["measured"] = measured.points()
    lines = {
        name: lambda size, name=name: line.seconds(name, num_ranks, size)
        for name in ("ring", rival)
    }
    crossing = crossover(line, "ring", rival, num_ranks)
    marks = {"equal": crossing} if crossing else {}
    title = f"{num_ranks} ranks: alpha {seconds_text(line.alpha)}, {1e-6 / line.beta:,.3g} MB/s"
    png, size = costs(points, lines, title, marks, (4, 1 << 30))._repr_png_()
    return png, size["width"], _sentence(line, num_ranks, rival, crossing)


def _sentence(line: AlphaBeta, num_ranks: int, rival: str, crossing: float | None) -> str:
    name = rival.replace("_", " ").replace("halving doubling", "halving-doubling")
    if crossing is not None:
        return f"Below {num_bytes_text(crossing)} {name} wins, above it the ring."
    ring, other = (line.seconds(algorithm, num_ranks, 1) for algorithm in ("ring", rival))
    if ring == other:
        return f"The ring and {name} cost the same at every size."
    return f"{name.capitalize() if other < ring else 'The ring'} wins at every size."


def _slider(label: str, value: float, least: int, most: int, hint: str) -> ipywidgets.Widget:
    return ipywidgets.FloatLogSlider(
        value, min=least, max=most, step=0.02, description=label, tooltip=hint, readout_format=".2e"
    )
