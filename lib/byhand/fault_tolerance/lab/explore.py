"""How often to save, in your hands: a job as it is, and what shorter saves or restarts bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byhand.fault_tolerance.interval import RATES, best, between, goodput
from byhand.figures import pen, style

if TYPE_CHECKING:  # ranks import this package
    import ipywidgets
    from matplotlib.figure import Figure

INTERVALS = 60, 3600 * 6  # seconds that are drawn, least and most
TICKS = (1, 3, 10, 30, 100, 300)  # minutes


SHORT_SAVE, SHORT_RESTART = 4, 120  # seconds, that the other lines have
WRITING = 60  # seconds until a short save is on the disk, and counts: a failure loses them, too
COLOURS = style.COMPUTE, "#e69f00", "#56b4e9", "#1b7a4d"


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
    """The goodput over the interval at Llama 3's rate of failures, and with shorter saves, ..."""
    mean, restart = between(num_gpus, RATES["Llama 3 405B"]), 60 * restart_minutes
    jobs = {
        f"{save_seconds:g} s and {restart_minutes:g} min": (save_seconds, restart),
        f"saves of {SHORT_SAVE} s": (SHORT_SAVE, restart + WRITING),
        f"restarts of {SHORT_RESTART // 60} min": (save_seconds, SHORT_RESTART),
        "both": (SHORT_SAVE, SHORT_RESTART + WRITING),
    }
    least, most = INTERVALS
    intervals = [least * (most / least) ** (k / 60) for k in range(61)]
    tops = {name: goodput(best(job[0], mean), *job, mean) for name, job in jobs.items()}
    now, saves, restarts, _ = (f"{top:.0%}" for top in tops.values())
    title = f"{now} is useful; {saves} with short saves, {restarts} with short restarts"
    with style.plot(3.1, title) as (figure, axes):
        for (save, wait), colour in zip(jobs.values(), COLOURS, strict=True):
            line = [100 * goodput(each, save, wait, mean) for each in intervals]
            axes.plot([each / 60 for each in intervals], line, color=colour, linewidth=2.2)
            at = best(save, mean)
            top = at / 60, 100 * goodput(at, save, wait, mean)
            axes.plot(*top, "o", color=colour, markersize=6)
        axes.set(xlabel="minutes between saves", ylabel="goodput, %", xscale="log")
        axes.set(ylim=(0, 102), yticks=range(0, 101, 25))
        axes.set_xticks(TICKS, [str(tick) for tick in TICKS])
        axes.set_xticks([], minor=True)
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        names = [f"{name}: {top:.0%}" for name, top in tops.items()]
        pen.key(axes, dict(zip(names, COLOURS, strict=True)))
    text = f"One of {num_gpus:,} GPUs fails every {mean / 60:.0f} minutes, at Llama 3's rate."
    return figure, text
