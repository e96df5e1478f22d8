"""How often to save, in your hands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byhand.fault_tolerance.interval import RATES, best, between, goodput

if TYPE_CHECKING:  # ranks import this package
    import ipywidgets
    from matplotlib.figure import Figure

INTERVALS = 60, 3600 * 6  # seconds that are drawn, least and most
TICKS = (1, 3, 10, 30, 100, 300)  # minutes


def interval_explorer(
    num_gpus: int = 131072, save_seconds: int = 60, restart_minutes: int = 15
) -> ipywidgets.VBox:
    """Choose the GPUs, what a save costs and what a restart takes; see the goodput."""
    from byhand.tools.explorer import explorer, steps

    gpus = steps("GPUs", [1024, 4096, 16384, 65536, 131072], num_gpus)
    saves = steps("a save, s", [1, 4, 15, 60, 240], save_seconds)
    restarts = steps("a restart, min", [1, 2, 5, 15, 60], restart_minutes)
    return explorer([[gpus, saves, restarts]], draw_goodput)


def draw_goodput(num_gpus: int, save_seconds: float, restart_minutes: float) -> tuple[Figure, str]:
    """The goodput over the interval, at Llama 3's rate of failures, and what is best."""
    from byhand.figures import curves

    mean, restart = between(num_gpus, RATES["Llama 3 405B"]), 60 * restart_minutes
    least, most = INTERVALS
    intervals = [least * (most / least) ** (k / 60) for k in range(61)]
    line = [100 * goodput(each, save_seconds, restart, mean) for each in intervals]
    at = best(save_seconds, mean)
    top = goodput(at, save_seconds, restart, mean)
    title = f"{num_gpus:,} GPUs, saved every {at / 60:.1f} minutes: {top:.0%} is useful"
    minutes = [each / 60 for each in intervals]
    look: dict[str, Any] = {"log_x": True, "from_zero": True, "widths": (2.4,)}
    figure = curves(
        {"goodput": line}, "minutes between saves", "goodput, %", title, minutes, **look
    )
    figure.axes[0].set_xticks(TICKS, [str(tick) for tick in TICKS])
    figure.axes[0].set(ylim=(0, 100), yticks=range(0, 101, 25))
    text = f"One of {num_gpus:,} GPUs fails every {mean / 60:.0f} minutes, at Llama 3's rate."
    return figure, text
