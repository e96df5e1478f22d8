"""Three small pictures for the README, of what the course does that others do not.

Each is drawn from what was counted or measured: by ledgers now, by `make bench`, in tests/answers.
"""

import re
from math import log2
from pathlib import Path

from matplotlib.axes import Axes

from byhand.all_reduce.lab import watch_rounds
from byhand.figures import save_svg, style

TESTS = Path(__file__).parents[2] / "tests"
SIZE = (3.1, 2.15)  # inches: three stand side by side on a page of a repository
TIMEOUTS = {"NCCL's time-out": 600.0, "gloo's time-out": 1800.0}  # seconds, as torch sets them


def new_picture(title: str) -> tuple[style.CourseFigure, Axes]:
    figure = style.CourseFigure(SIZE, layout="constrained")
    figure.suptitle(title, x=0.02, ha="left", fontsize=9.5, weight="bold")
    return figure, figure.subplots()


def draw_counted(path: Path) -> None:
    """Bytes that the busiest rank sends in an all-reduce: formulas as lines, counts as dots."""
    elements = 840  # which 2 to 8 ranks share evenly
    formulas = {
        "recursive doubling": ("log₂ n", log2, (2, 4, 8), "#882255"),
        "ring": ("2 (n − 1) / n", lambda n: 2 * (n - 1) / n, range(2, 9), style.COMPUTE),
    }
    with style.styled():
        figure, axes = new_picture("Counted bytes lie on the formula")
        for name, (words, formula, ranks, colour) in formulas.items():
            sent = [watch_rounds(name, n, elements).busiest / (4 * elements) for n in ranks]
            assert sent == [formula(n) for n in ranks], f"{name}: {sent}"
            many = [2 + step / 20 for step in range(121)]
            axes.plot(many, [formula(n) for n in many], color=style.tint(colour, 0.5), lw=1.5)
            axes.plot(ranks, sent, "o", color=colour, ms=5.5, clip_on=False)
            left = name != "ring"
            where = (2.1, formula(8) - 0.2) if left else (8, formula(8) - 0.5)
            side = "left" if left else "right"
            look = {"color": colour, "ha": side, "fontsize": style.SMALL_POINTS}
            axes.text(*where, f"{name}: {words}", **look)
        axes.set(xlim=(1.8, 8.2), ylim=(0, 3.2), yticks=range(4), xticks=range(2, 9))
        axes.set(xlabel="ranks n (line: formula, dot: counted)", ylabel="tensors sent")
    save_svg(figure, path)
    print(f"{path}: counted is the formula")


def draw_seconds(path: Path) -> None:
    """Seconds until four ranks have summed, and until a hang is told, as `make bench` took them."""
    found = (TESTS / "benchmarks" / "results.md").read_text()

    def taken(before: str) -> float:
        number = re.search(before + r"\D*?([\d ]*\d(?:\.\d+)?) ms", found)[1]
        return float(number.replace(" ", "")) / 1000

    launch, spawn = taken(r"byhand `launch`"), taken(r"`torch\.multiprocessing\.spawn`")
    told = taken("deadlock's sentence: median")
    rows = {"launch": launch, "mp.spawn": spawn, "a hang is named": told, **TIMEOUTS}
    heights = [0, 1, 2.6, 3.6, 4.6]
    with style.styled():
        figure, axes = new_picture(f"{1000 * launch:.0f} ms to start, {told:.2f} s to name a hang")
        ours = [style.COMPUTE if at in (0, 2.6) else style.COMMUNICATION for at in heights]
        axes.barh(heights, list(rows.values()), 0.72, left=1e-3, color=ours)
        for at, seconds in zip(heights, rows.values(), strict=True):
            text = f"{seconds / 60:.0f} min" if seconds > 60 else style.seconds_text(seconds)
            axes.text(1.25 * seconds, at, text, va="center", fontsize=style.SMALL_POINTS)
        axes.set(xscale="log", xlim=(1e-3, 3e4), ylim=(5.1, -0.5), yticks=heights)
        axes.set_yticklabels(rows)
        axes.set(xlabel="seconds (log scale)", xticks=[10.0**e for e in range(-3, 5)])
        axes.set_xticklabels(["", "0.01", "", "1", "", "100", "", "10 000"])
        axes.minorticks_off()
    save_svg(figure, path)
    print(f"{path}: {rows}")


def draw_judged(path: Path) -> None:
    """How many wrong and unusual right answers to each exercise `make answers` judges."""
    stems = sorted(one.name for one in (TESTS / "answers").iterdir() if one.name[:2].isdigit())

    def count(kind: str) -> list[int]:
        return [len(list((TESTS / "answers" / stem).glob(f"*/{kind}_*.py"))) for stem in stems]

    wrong, right = count("wrong"), count("right")
    numbers = range(1, len(stems) + 1)
    with style.styled():
        figure, axes = new_picture(f"{sum(wrong)} wrong lose, {sum(right)} right do not")
        axes.bar(numbers, wrong, 0.78, color=style.COMPUTE)
        axes.bar(numbers, [-n for n in right], 0.78, color="#e69f00")
        axes.set(xlabel="exercise", xticks=[1, 6, 12, 18], ylabel="answers judged")
        axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.0f}")
        most = max(wrong)
        axes.text(0.5, 0.97 * most, "wrong", color=style.COMPUTE, fontsize=style.SMALL_POINTS)
        below = -max(right) - 0.06 * most
        look = {"color": "#8a5f00", "va": "top", "fontsize": style.SMALL_POINTS}
        axes.text(0.5, below, "unusual, but right", **look)
        axes.set(xlim=(0.3, len(stems) + 0.7), ylim=(below - 0.15 * most, 1.05 * most))
    save_svg(figure, path)
    print(f"{path}: {sum(wrong)} wrong, {sum(right)} right")
