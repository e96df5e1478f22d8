"""Explorers for a notebook: each change of a control runs real ranks and redraws their picture."""

import html
from collections.abc import Callable

import ipywidgets

from byhand.all_reduce.lab import PLANS, watch_rounds
from byhand.collectives.lab import MOST_RANKS, NAMES, ROOTED, demonstrate, picture
from byhand.data_parallel.lab import LAYER_BYTES, NAIVE, NUM_LAYERS, watch
from byhand.figures import schedule_timeline
from byhand.pipeline_schedules import (
    ScheduleError,
    gpipe,
    interleaved,
    one_forward_one_backward,
    simulate,
    zero_bubble_h1,
)
from byhand.runtime import RankError
from byhand.tensor_parallel.lab import SPLITS, block_bytes


def collective_explorer(name: str = "broadcast", world_size: int = 4) -> ipywidgets.VBox:
    """Choose the collective, the number of ranks and the root; see who holds what.

    Each choice launches that many ranks. What goes wrong is shown as a sentence in the picture's
    place.
    """
    collective = ipywidgets.Dropdown(options=NAMES, value=name, description="collective")
    ranks = slider("ranks", world_size, 1, MOST_RANKS)
    root = slider("root", 0, 0, world_size - 1)

    def drawn(name: str, world_size: int, _: int) -> tuple[bytes, int, str]:
        root.max = world_size - 1  # which may lower the root's value
        root.disabled = name not in ROOTED
        return draw_collective(name, world_size, root.value)

    return explorer([[collective, ranks, root]], drawn)


def draw_collective(name: str, world_size: int, root: int) -> tuple[bytes, int, str]:
    """A demonstration's picture (PNG), its width in pixels, and "";
    or no picture, and the sentence that says why."""
    try:
        png, size = picture(demonstrate(name, world_size, root))._repr_png_()
    except Exception as error:
        return b"", 0, f"{type(error).__name__}: {error}"
    return png, size["width"], ""


def all_reduce_explorer(name: str = "ring", world_size: int = 4) -> ipywidgets.VBox:
    """Choose the algorithm, the ranks and the tensor; go through the rounds by hand, or play them.

    Each choice runs it once on that many ranks; the sentence is what the run's ledger says. What
    goes wrong is shown as a sentence in the picture's place.
    """
    algorithm = ipywidgets.Dropdown(options=list(PLANS), value=name, description="algorithm")
    ranks = slider("ranks", world_size, 1, MOST_RANKS)
    size = ipywidgets.Dropdown(options=[1, 7, 1024, 1 << 20], value=1024, description="floats")
    number, play = slider("round", 1, 0, 1), ipywidgets.Play(interval=900, max=1)

    def drawn(name: str, num_ranks: int, num_elements: int, _: int) -> tuple[bytes, int, str]:
        number.max = play.max = len(PLANS[name](num_ranks).rounds)  # may lower its value
        return draw_round(name, num_ranks, num_elements, number.value)

    box = explorer([[algorithm, ranks, size], [number]], drawn)
    ipywidgets.jslink((play, "value"), (number, "value"))
    box.children[1].children = (number, play)
    return box


def draw_round(name: str, num_ranks: int, num_elements: int, number: int) -> tuple[bytes, int, str]:
    """A round's picture (PNG), its width in pixels, and what the ledger counted; or why not."""
    try:
        rounds = watch_rounds(name, num_ranks, num_elements)
        png, size = rounds.picture(number)._repr_png_()
    except Exception as error:
        return b"", 0, _sentence(error)
    return png, size["width"], str(rounds)


BUCKETS = {
    "none: each tensor by itself, after backward": NAIVE,
    **{f"{n} × 1.05 MB": n * LAYER_BYTES for n in range(1, NUM_LAYERS)},
    "one bucket for all": NUM_LAYERS * LAYER_BYTES,
}


def bucket_explorer(bucket_bytes: int = LAYER_BYTES, world_size: int = 2) -> ipywidgets.VBox:
    """Choose the size of the buckets and the number of ranks; see one real training step.

    The model has six layers with 1.05 MB of gradients each. What goes wrong is shown as a sentence
    in the picture's place.
    """
    size = ipywidgets.Dropdown(
        options=list(BUCKETS.items()), value=bucket_bytes, description="bucket"
    )
    return explorer([[size, slider("ranks", world_size, 1, 4)]], draw_buckets)


def draw_buckets(bucket_bytes: int, world_size: int) -> tuple[bytes, int, str]:
    """A step's picture (PNG), its width in pixels, and what it took; or no picture, and why."""
    try:
        steps = watch(bucket_bytes, world_size)
        png, size = steps._repr_png_()
    except Exception as error:
        return b"", 0, f"{type(error).__name__}: {error}"
    return png, size["width"], repr(steps)


def split_explorer(split: str = "column, then row", world_size: int = 4) -> ipywidgets.VBox:
    """Choose how an MLP block is split, and its sizes; see what each rank sends, by formula and by
    ledger.

    hidden: in multiples of the features. What goes wrong is shown in the picture's place.
    """
    how = ipywidgets.Dropdown(options=list(SPLITS), value=split, description="split")
    rows = slider("rows", 32, 1, 128)
    features, hidden = slider("features", 48, 24, 240), slider("hidden ×", 4, 1, 8)
    ranks = slider("ranks", world_size, 1, MOST_RANKS)
    return explorer([[how, ranks], [rows, features, hidden]], draw_split)


def draw_split(
    split: str, world_size: int, num_rows: int, features: int, times: int
) -> tuple[bytes, int, str]:
    """The bytes of one split as a picture (PNG), its width in pixels, and "";
    or no picture, and the sentence that says why."""
    try:
        drawn = block_bytes(split, world_size, num_rows, features, times * features)
        png, size = drawn._repr_png_()
    except Exception as error:
        return b"", 0, _sentence(error)
    return png, size["width"], ""


SCHEDULES = {
    "GPipe": lambda p, m: simulate(gpipe(p, m)),
    "1F1B": lambda p, m: simulate(one_forward_one_backward(p, m)),
    "interleaved 1F1B, 2 chunks": lambda p, m: simulate(interleaved(p, m, 2), 0.5, 0.5, 0.5),
    "zero bubble (ZB-H1)": lambda p, m: simulate(zero_bubble_h1(p, m)),
}


def pipeline_explorer(
    schedule: str = "1F1B", num_stages: int = 4, num_micro_batches: int = 8
) -> ipywidgets.VBox:
    """Choose a schedule, stages and micro-batches; see the simulated timeline, and what is held.

    A forward takes 1, each half of a backward too. What goes wrong is shown as a sentence.
    """
    which = ipywidgets.Dropdown(options=list(SCHEDULES), value=schedule, description="schedule")
    stages = slider("stages", num_stages, 1, 8)
    return explorer(
        [[which, stages, slider("micro-batches", num_micro_batches, 1, 32)]], draw_pipeline
    )


def draw_pipeline(schedule: str, num_stages: int, num_micro_batches: int) -> tuple[bytes, int, str]:
    """A simulated step's picture (PNG), its width, and a sentence; or no picture, and why."""
    try:
        timeline = SCHEDULES[schedule](num_stages, num_micro_batches)
        png, size = schedule_timeline(timeline, unit="forwards")._repr_png_()
    except ScheduleError as error:
        return b"", 0, str(error)
    held = max(timeline.peak_in_flight) / (2 if "chunks" in schedule else 1)
    took = f"The step takes the time of {timeline.seconds:g} forwards"
    return png, size["width"], f"{took}; a stage holds up to {held:g} micro-batches' activations."


def explorer(rows: list[list[ipywidgets.Widget]], drawn: Callable) -> ipywidgets.VBox:
    """Rows of controls above the picture that `drawn(*their values)` gives, drawn at each change.

    `drawn` returns the picture (PNG), its width and a sentence; without a picture, why.
    """
    # The picture is an Image and not an Output: nbclient can wait for ever for a cell that draws
    # into an Output (its answer to the widget may hide the cell's reply).
    shown, sentence = ipywidgets.Image(format="png"), ipywidgets.HTML()  # a Label would not wrap
    controls = [control for row in rows for control in row]

    def redraw(_=None) -> None:
        png, width, text = drawn(*(control.value for control in controls))
        sentence.value = html.escape(text, quote=False)
        shown.value, shown.width = png, str(width)
        shown.layout.display = None if png else "none"

    for control in controls:
        control.observe(redraw, "value")
    redraw()
    return ipywidgets.VBox([*map(ipywidgets.HBox, rows), shown, sentence])


def _sentence(error: Exception) -> str:
    """What a rank said, without where; any other error with its type."""
    if isinstance(error, RankError) and "ValueError: " in error.traceback:
        return error.traceback.strip().rpartition("ValueError: ")[2]
    return f"{type(error).__name__}: {error}"


def slider(label: str, value: int, least: int, most: int) -> ipywidgets.IntSlider:
    # Without continuous updates a drag launches ranks once, where it ends.
    return ipywidgets.IntSlider(value, least, most, description=label, continuous_update=False)
