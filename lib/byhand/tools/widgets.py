"""Explorers for a notebook: each change of a control runs real ranks and redraws their picture."""

import ipywidgets

from byhand.collectives.lab import MOST_RANKS
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
from byhand.tensor_parallel.lab import SPLITS, block_bytes
from byhand.tools.explorer import explorer, sentence, slider

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
        return b"", 0, sentence(error)
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
