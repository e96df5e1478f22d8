"""Figures contain what they claim, can be read, and are the same file each time."""

import base64
import html
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from readable import assert_readable, words

from byhand import RankError, collectives, figures, launch
from byhand.all_reduce.algorithms import history, ring
from byhand.all_reduce.lab import ALGORITHMS, watch_rounds
from byhand.collectives.lab import NAMES, collective_explorer, demonstrate, picture
from byhand.figures import Block, Span, collective, style
from byhand.figures.block import TENSOR
from byhand.figures.cells import Cell, cells
from byhand.figures.columns import Bar
from byhand.figures.messages import find_messages
from byhand.figures.mountain import Held
from byhand.figures.schedule import COLOURS
from byhand.figures.timeline import find_segments
from byhand.pipeline_schedules import (
    gpipe,
    interleaved,
    one_forward_one_backward,
    simulate,
    zero_bubble_h1,
)
from byhand.rank_groups import NAMES as GROUPS
from byhand.rank_groups import RankGrid
from byhand.rank_groups.lab import draw_grid, grid_explorer, show_grid
from byhand.runtime.ledger import Event
from byhand.tools.explorer import explorer, slider


def call(rank, op, start, end, ready=None, **more):
    """A call in which its rank stood still, from its start to its end unless told otherwise."""
    times = {"start": start, "wait_start": start, "wait_end": end, "ready": ready}
    return Event(rank=rank, op=op, **{**times, "group": (0, 1), "payload_bytes": 8, **more})


# Rank 1 calls 30 ms after rank 0; both go on at 40 ms.
LATE = [call(0, "all_reduce", 0.0, 0.04, 0.03), call(1, "all_reduce", 0.03, 0.04, 0.03)]
SPANS = [(0.0, 0.05), (0.0, 0.05)]


def message(sender, receiver, start, end):
    return [
        call(sender, "send", start, end, peer=receiver),
        call(receiver, "recv", start, end, peer=sender),
    ]


RING = [event for rank in range(3) for event in message(rank, (rank + 1) % 3, 0.0, 1.0)]
CHAIN = [*message(0, 1, 0.0, 1.0), *message(1, 2, 1.0, 2.0)]
SUMS = [[Block(0, (0, 1), "11"), Block(1, (0, 1), "22")]] * 2
OWN = [[Block(0, (0,), "1"), Block(1, (0,), "2")], [Block(0, (1,), "10"), Block(1, (1,), "20")]]
WIDE = [[Block(column, (0, 7), str(column)) for column in range(8)] for _ in range(8)]
BYTES = {"rank 0": {"reduce_scatter": 3000, "all_gather": 3000}, "rank 1": {"all_reduce": 6000}}

LOSSES = [4.0, 2.0, 1.0]
WATCHED = [("forward", "", 0.0, 0.01), ("standing still", "", 0.01, 0.03)]
WATCHED += [("message in flight", 0, 0.02, 0.03)]
BAND = {"step": [(value - 0.5, value + 0.5) for value in LOSSES]}

SHARDS = {
    "column": "y[T × T], ·, x[T × I] in columns",
    "row": "x[T × I] in columns, ·, W[I × T] in rows, =, y[T × T] in partial, →, y[T × T]",
}
HOT = [{0: 90, 1: 20}, {2: 5, 3: 0}, {4: 12, 5: 30}]
SPAN = [("forward", 0, 0.0, 0.1), ("all_gather", 1, 0.0, 0.05), ("reduce_scatter", 0, 0.1, 0.2)]

ALL_REDUCE = collective.Picture(OWN, SUMS, "all_reduce", "A title")


def drawn(before, after):
    return figures.collective_pictures([ALL_REDUCE._replace(before=before, after=after)])


def schedule(*schedules):
    return figures.schedule_timeline(*map(simulate, schedules), unit="forwards")


STEP = Held([3e6, 5e6, 9e6, 4e6], {"weights": 1e6, "optimizer": 2e6}, {"forward": 2, "backward": 4})
COLUMNS = [Bar([(3, "#332288")], "3.0"), Bar([(1, "#332288"), (2, "#e69f00")], "3.0")]
FIGURES = {
    "collective": lambda: drawn(OWN, SUMS),
    "wide collective": lambda: drawn(WIDE, WIDE),
    "two collectives": lambda: figures.collective_pictures(2 * [ALL_REDUCE]),
    "journey": lambda: figures.panel_stack(
        {"chosen": OWN, "sorted": OWN, "there": SUMS}, [("sort", ""), ("go", "back")], "A title", 2
    ),
    "timeline": lambda: figures.timeline(LATE, SPANS),
    "phases": lambda: figures.timeline(LATE, SPANS, None, {"one": (0, 0.02), "two": (0.02, 0.05)}),
    "messages": lambda: figures.message_diagram(CHAIN, 3),
    "bytes": lambda: figures.bytes_bars(BYTES, BYTES),
    "shards": lambda: figures.shard_picture(SHARDS, {"T": 0.5, "I": 1.2}, 4, "A title"),
    "block": lambda: figures.block_flow(TENSOR, 4, "A title"),
    "curves": lambda: figures.curves({"one": LOSSES, "two": LOSSES}, "step", "loss", "A title"),
    "band": lambda: figures.curves({"step": LOSSES}, "KB", "ms", "A title", LOSSES, BAND, True),
    "overlap": lambda: figures.lanes({"rank 0": [Span(*span) for span in WATCHED]}, "A title"),
    "experts": lambda: figures.expert_loads({"in order": HOT, "even": HOT[::-1]}),
    "lanes": lambda: figures.lanes({"one": [Span(*span) for span in SPAN]}, "A title"),
    "all rounds": lambda: figures.all_rounds(history(ring(3)), ring(3).rounds, "A title"),
    "seconds": lambda: figures.seconds_by_size(
        {"a": [(9, 1, 1, 2), (99, 2, 1, 2)]}, {}, "A title", {"m": 50}
    ),
    "mountain": lambda: figures.mountain({"one": STEP}, "A title"),
    "mountains": lambda: figures.mountain({"one": STEP, "two": STEP}, "A title"),
    "columns": lambda: figures.columns(
        {"a": COLUMNS, "b": COLUMNS}, ("MB held", "MB sent"), "A title", {"x": "#332288"}
    ),
    "layouts": lambda: figures.layout_seconds({n: ([1.0] * 5, 5.5) for n in ("dp 2", "tp 2")}),
    "grid": lambda: show_grid(RankGrid(32, tp=2, cp=2, ep=4, pp=2), 8),
    "one schedule": lambda: schedule(gpipe(3, 4)),
    "two schedules": lambda: schedule(gpipe(4, 8), one_forward_one_backward(4, 8)),
    "chunks": lambda: figures.schedule_timeline(
        simulate(interleaved(4, 8, 2), 0.5, 0.5, 0.5), simulate(zero_bubble_h1(4, 8))
    ),
    "a long schedule": lambda: schedule(one_forward_one_backward(8, 32)),
}
ROUNDS = {
    f"{name} of {n}": lambda name=name, n=n: watch_rounds(name, n).picture(2)
    for name in ALGORITHMS
    for n in (1, 4, 8)
}


@pytest.mark.parametrize("draw", ROUNDS.values(), ids=ROUNDS)
def test_a_round_can_be_read(draw):
    assert_readable(draw())


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_a_figure_can_be_read_shows_itself_in_a_notebook_and_is_the_same_file_each_time(draw):
    figure = draw()
    assert figure.get_figwidth() == 7
    shown = figure.svg()
    assert shown == draw().svg()
    assert_readable(figure)
    assert "dc:date" not in shown
    (title,) = re.findall("<dc:title>(.*)</dc:title>\n    <dc:format", shown)
    assert html.unescape(title) in [" ".join(word.split()) for word in words(figure)]


def test_a_figure_is_as_wide_on_a_screen_that_shows_no_drawings():
    pixels, width = FIGURES["collective"]().png()
    assert (pixels[:4], width) == (b"\x89PNG", 7 * style.SCREEN_DPI)


def test_a_figure_is_saved_as_the_file_that_it_shows(tmp_path):
    draw = FIGURES["collective"]
    figures.save_svg(draw(), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == draw().svg()


def test_a_collective_picture_shows_every_block_of_every_rank():
    figure = drawn(OWN, SUMS)
    for shown in ("before", "after", "rank 0", "rank 1", "1", "2", "10", "20", "all-reduce"):
        assert words(figure).count(shown) == 1, f"{shown!r} in {words(figure)}"
    assert words(figure).count("11") == words(figure).count("22") == 2


def test_a_sum_has_a_stripe_for_each_of_its_ranks():
    figure = drawn(OWN, SUMS)
    patches = [patch for axes in figure.axes for patch in axes.patches]
    stripes = [patch for patch in patches if patch.get_linewidth() == 0]
    widths = sorted({round(patch.get_width(), 3) for patch in stripes})
    assert len(stripes) == 4 + 2 * 4
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.01)


def test_eight_ranks_have_eight_colours_and_readable_text():
    assert len(set(style.RANK_COLOURS)) == 8
    assert style.readable_on("#f0e442") == style.INK
    assert style.readable_on("#0072b2") == style.PAPER


@pytest.mark.parametrize("strength", [1, 0.7, 0.45, 0.25])
def test_words_can_be_read_on_every_colour_and_tint_and_in_every_colour_on_paper(strength):
    named = (style.OP_COLOURS, style.AXIS_COLOURS, style.HELD_COLOURS, style.STATE_COLOURS)
    colours = [*style.RANK_COLOURS, *(colour for names in named for colour in names.values())]
    for colour in (style.tint(colour, strength) for colour in colours):
        assert style.contrast(style.readable_on(colour), colour) >= 4.5
        assert style.contrast(style.legible(colour), style.PAPER) >= 4.5
    assert style.contrast("#000000", "#ffffff") == 21


def test_a_rank_waits_until_the_last_one_calls():
    kinds = [(s.rank, s.kind, s.start, s.end) for s in find_segments(LATE, SPANS)]
    assert kinds == [
        (0, "waiting", 0.0, 0.03),
        (0, "communication", 0.03, 0.04),
        (0, "compute", 0.04, 0.05),
        (1, "compute", 0.0, 0.03),
        (1, "communication", 0.03, 0.04),
        (1, "compute", 0.04, 0.05),
    ]


def test_the_timelines_title_states_the_longest_wait():
    assert "Rank 0 waits 60% of its time for other ranks" in words(figures.timeline(LATE, SPANS))
    alone = words(figures.timeline([], [(0.0, 1.0)]))
    assert "No rank waits for another" in alone
    assert "waiting" not in alone


def test_the_timeline_has_a_row_per_rank_and_rank_0_on_top():
    axes = figures.timeline(LATE, SPANS).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["rank 0", "rank 1"]
    bottom, top = axes.get_ylim()
    assert top < 0 < 1 < bottom
    assert axes.get_xlabel() == "milliseconds"


def test_a_call_in_flight_during_compute_is_a_band_and_not_a_pause():
    flying = [call(0, "all_reduce", 0.0, 0.04, 0.0, wait_start=0.04, overlapped=True)]
    assert [s.kind for s in find_segments(flying, [(0.0, 0.05)])] == ["compute"]
    assert "call in flight meanwhile" in words(figures.timeline(flying, [(0.0, 0.05)]))
    flying[0].wait_start = 0.03
    segments = find_segments(flying, [(0.0, 0.05)])
    assert [(s.kind, s.start) for s in segments][1] == ("communication", pytest.approx(0.03))


def test_a_timeline_without_the_oldest_calls_tells_the_same_of_the_others():
    later = [call(rank, "all_reduce", 0.1 + 0.03 * rank, 0.14, 0.13) for rank in (0, 1)]
    spans = [(0.05, 0.15)] * 2
    assert find_segments([LATE[1], *later], spans) == find_segments([*LATE, *later], spans)


def polls_for_a_call(rank, world_size):
    work = dist.all_reduce(torch.ones(3), async_op=True)
    while not work.is_completed():
        time.sleep(0.01)


def test_a_call_that_nobody_waits_for_is_a_band_and_no_standstill():
    run = launch(polls_for_a_call, 2)
    segments = find_segments(run.ledger.events, run.spans)
    assert {segment.kind for segment in segments} == {"compute"}
    assert "call in flight meanwhile" in words(figures.timeline(run.ledger.events, run.spans))


def raises_while_another_waits(rank, world_size):
    if rank == 0:
        time.sleep(0.3)
        raise ValueError("a bad batch")
    dist.barrier()


def test_a_rank_that_waits_in_vain_waits_to_its_end():
    with pytest.raises(RankError) as caught:
        launch(raises_while_another_waits, 2)
    run = caught.value.run
    kinds = [s.kind for s in find_segments(run.ledger.events, run.spans) if s.rank == 1]
    assert "waiting" in kinds
    assert "communication" not in kinds


def test_messages_that_wait_for_none_share_a_step():
    assert [m.step for m in find_messages(RING)] == [1, 1, 1]
    assert [(m.sender, m.receiver, m.step) for m in find_messages(CHAIN)] == [(0, 1, 1), (1, 2, 2)]


def swaps_and_waits_for_no_send(rank, world_size):
    dist.isend(torch.ones(4), 1 - rank)
    dist.recv(torch.empty(4), 1 - rank)
    dist.barrier()


def test_sends_that_nobody_saw_end_precede_no_message():
    run = launch(swaps_and_waits_for_no_send, 2)
    assert [message.step for message in find_messages(run.ledger.events)] == [1, 1]


def receives_from_anyone(rank, world_size):
    if rank == 0:
        for _ in range(world_size - 1):
            dist.recv(torch.empty(3))
    else:
        dist.send(torch.ones(3), 0)


def test_messages_received_from_any_rank_are_shown():
    messages = find_messages(launch(receives_from_anyone, 3).ledger.events)
    assert {(m.sender, m.receiver) for m in messages} == {(1, 0), (2, 0)}


def test_messages_meet_by_their_tags():
    sends = [call(0, "send", 0.0, 1.0, peer=1, tag=tag, payload_bytes=tag) for tag in (1, 2)]
    receives = [call(1, "recv", 0.2 * n, 1.0, peer=0, tag=tag) for n, tag in enumerate((2, 1))]
    assert {m.num_bytes: m.step for m in find_messages([*sends, *receives[:1]])} == {2: 1}


def test_the_message_diagram_counts_messages_bytes_and_rounds():
    figure = figures.message_diagram(CHAIN, 3)
    assert "2 messages, 16 B in all, 2 rounds" in words(figure)
    assert [t for t in words(figure) if t.startswith("round")] == ["round 1", "round 2"]


def test_a_message_has_its_owners_colour():
    figure = figures.message_diagram(CHAIN, 3, "A title", lambda *_: "k", owner=lambda *_: 2)
    boxes = [text.get_bbox_patch() for text in figure.axes[0].texts if text.get_text() == "k"]
    colour = style.to_rgb(style.rank_colour(2))
    assert [box.get_facecolor()[:3] for box in boxes] == [colour] * 2


def test_a_message_that_nobody_owns_is_faint():
    figure = figures.message_diagram(CHAIN, 3, "A title", owner=lambda sender, _: sender or None)
    dots = [line.get_color() for line in figure.axes[0].lines]
    assert dots == [style.FAINT, style.rank_colour(1)]


def test_two_message_diagrams_can_share_a_scale_and_show_their_halves():
    figure = figures.message_diagram(CHAIN, 3, "A title", num_rounds=4, halves=True)
    assert [t for t in words(figure) if t.startswith("round")][-1] == "round 4"
    assert len(figure.axes[0].lines) == 1 + len(find_messages(CHAIN))


def test_a_shard_picture_says_whose_each_piece_is_and_how_a_matrix_is_placed():
    shown = words(figures.shard_picture(SHARDS, {"T": 0.5, "I": 1.2}, 4, "A title"))
    assert [shown.count(str(rank)) for rank in range(4)] == [3] * 4
    assert "y [T × T]\npartial" in shown
    assert "x [T × I]\nsharded" in shown
    with pytest.raises(
        ValueError, match="in diagonal' is cut in a way that is none of replicated, rows"
    ):
        figures.shard_picture({"": "x[T × I] in diagonal"}, {"T": 1, "I": 1}, 4, "A title")


def test_a_wait_that_would_be_a_hair_line_is_not_drawn():
    late = call(0, "recv", 0.0, 1.0, wait_start=0.985, peer=1, overlapped=True)
    assert {segment.kind for segment in find_segments([late], [(0.0, 2.0)])} == {"compute"}


def test_the_sheets_of_a_sum_stay_below_the_line_above_them():
    lines, inches = {"a caption": "y[T × 3] in partial"}, {"T": 0.7, "3": 0.2}
    figure = figures.shard_picture(lines, inches, 8, "A title")
    (caption,) = (text for text in figure.axes[0].texts if text.get_text() == "a caption")
    figure.draw_without_rendering()
    bottom = caption.get_window_extent().y0
    assert max(sheet.get_window_extent().y1 for sheet in figure.axes[0].patches) < bottom


def test_a_block_sends_at_its_end_forward_and_at_its_begin_backward():
    shown = words(figures.block_flow(TENSOR, 3, "A title"))
    assert shown.count("all-reduce\nof y") == shown.count("all-reduce\nof grad_x") == 2
    assert shown.count("sends\nnothing") == 4


def test_brackets_name_stretches_of_a_matrix():
    thirds, inches = {"I": ("queries", "keys", "values")}, {"T": 0.5, "I": 2.4}
    figure = figures.shard_picture({"": "x[T × I] in columns"}, inches, 2, "A title", thirds)
    assert {"queries", "keys", "values"} <= set(words(figure))
    assert [words(figure).count(rank) for rank in "01"] == [3, 3]


@pytest.mark.parametrize(
    ("name", "axis"),
    [("tp-pp", "tp"), ("expert-dp", "dp"), ("dp_shard", "dp"), ("embedding", "pp")],
)
def test_a_group_has_the_hue_of_its_axis(name, axis):
    assert style.axis_colour(name) == style.AXIS_COLOURS[axis]


def test_groups_that_stand_beside_those_of_their_axis_are_darker():
    assert style.group_colour("tp") == style.AXIS_COLOURS["tp"]
    for name in ("expert-dp", "embedding"):
        axis, own = to_rgb(style.axis_colour(name)), to_rgb(style.group_colour(name))
        assert sum(own) < 0.7 * sum(axis)


def test_bytes_may_be_held_and_curves_equally_wide():
    assert "KB held" in words(figures.bytes_bars(BYTES, BYTES, did="held"))
    figure = figures.curves({"a": [1, 2], "b": [2, 1]}, "x", "y", "title", widths=(2,))
    assert {line.get_linewidth() for line in figure.axes[0].lines} == {2}


def test_the_bytes_bars_say_whether_counted_is_predicted():
    assert "Counted and predicted agree to the byte" in words(figures.bytes_bars(BYTES, BYTES))
    more = {**BYTES, "rank 1": {"all_reduce": 9000}}
    figure = figures.bytes_bars(BYTES, more)
    assert "rank 1: 9,000 bytes counted, 6,000 predicted" in words(figure)
    assert {"6 KB predicted", "9 KB counted", "KB sent"} <= set(words(figure))


def test_bars_with_different_rows_are_refused():
    with pytest.raises(ValueError, match="rows differ"):
        figures.bytes_bars({"rank 0": {}}, {"rank 1": {}})


@pytest.mark.parametrize("name", NAMES)
def test_a_demonstrations_picture_shows_the_numbers_of_its_run(name):
    shown = demonstrate(name, 3, 1)
    numbers = sorted(str(n) for rows in (shown.before, shown.after) for row in rows for n in row)
    assert sorted(word for word in words(picture(shown)) if word.isdigit()) == numbers


def test_a_real_run_draws_as_a_timeline():
    run = demonstrate("all_reduce", 2).run
    assert words(figures.timeline(run.ledger.events, run.spans)).count("rank 1") >= 1


def test_the_explorer_keeps_the_root_among_the_ranks():
    choices, shown, sentence = collective_explorer("scatter", 3).children
    name, world_size, root = choices.children
    root.value = 2
    before = shown.value
    world_size.value = 2
    assert (root.max, root.value) == (1, 1)
    assert shown.value.startswith("<img ")
    assert shown.value != before
    name.value = "all_reduce"
    assert root.disabled
    assert sentence.value == ""


def test_the_explorer_shows_what_goes_wrong_as_a_sentence():
    ranks = slider("ranks", 2, 1, 9)
    box = explorer([[ranks]], lambda n: (picture(demonstrate("scatter", n, 1)), ""))
    _, shown, sentence = box.children
    assert shown.value.startswith("<img ")
    ranks.value = 1
    assert shown.value == ""
    assert sentence.value == "root 1 is not one of the ranks, 0 to 0"


def test_a_slider_goes_by_tenths_where_its_value_is_one():
    tenths, whole = slider("skew", 1.0, 0, 2), slider("ranks", 2, 1, 9)
    assert (tenths.step, tenths.min, tenths.max, type(whole.value)) == (0.1, 0, 2, int)
    assert not tenths.continuous_update
    assert not whole.continuous_update  # else a drag launches ranks all the way


def test_a_rank_that_imports_a_lab_does_not_pay_for_pictures_or_fits():
    labs = [path.parent.name for path in Path(collectives.__file__).parents[1].glob("*/lab.py")]
    code = "import sys; " + "; ".join(f"import byhand.{name}.lab" for name in labs)
    code += "; print(*{'matplotlib', 'scipy', 'ipywidgets'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(labs) > 5
    assert run.stdout.split() == []


def test_a_page_without_a_kernel_shows_the_explorers_picture():
    box = collective_explorer("broadcast", 2)
    data, metadata = box._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]) == box.figure.png()[0]
    assert 'alt="Broadcast: every rank' in box.children[-2].value
    assert metadata["image/png"]["width"] > 0


def test_a_cell_that_nothing_fills_is_empty_and_one_of_two_colours_is_striped():
    axes = Figure().subplots()
    cells(axes, ["a", "b"], 2, [Cell(1, 0, ["#0072b2"], "x"), Cell(1, 1, ["#0072b2", "#e69f00"])])
    faces = [patch.get_facecolor()[:3] for patch in axes.patches]
    assert faces == [to_rgb(style.PAPER)] * 4 + [to_rgb(c) for c in 2 * ["#0072b2"] + ["#e69f00"]]
    (text,) = (text for text in axes.texts if text.get_text())
    assert text.get_position() == (0.5, 1)


def test_a_mountain_stands_on_what_stays_and_says_its_peak():
    figure = figures.mountain({"one": STEP}, "A title")
    (axes,) = figure.axes
    foot, top = [band.get_paths()[0].get_extents() for band in axes.collections[-2:]]
    assert (foot.y0, foot.y1, top.y0, top.y1) == (1, 3, 3, 9)
    assert {"9.0 MB", "forward", "backward"} <= set(words(figure))


def test_a_row_without_bars_is_a_bold_heading():
    rows = {"some": (), "a": COLUMNS}
    first, _ = figures.columns(rows, ("one", "two"), "A title", {}).axes
    assert [label.get_weight() for label in first.get_yticklabels()] == ["bold", "normal"]
    assert len(first.patches) == 1


def test_a_tick_stands_where_its_bar_says_and_is_named_in_the_key():
    rows = {"a": (Bar([(3, "#1f4e79")], "3", 2.5), Bar([(1, "#1f4e79")], "1"))}
    figure = figures.columns(rows, ("one", "two"), "A title", {}, "on paper")
    first, second = ([list(line.get_xdata()) for line in axes.lines] for axes in figure.axes)
    assert (first, second) == ([[2.5, 2.5]], [])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["on paper"]


@pytest.mark.parametrize(("tensors", "text"), [(0.125, ".125"), (1.0, "1"), (1.5, "1.5")])
def test_what_a_link_carried_is_said_to_an_eighth(tensors, text):
    assert text in words(figures.traffic_matrices({"a": {(0, 1): tensors}}, 2, "A title"))


def test_traffic_matrices_show_each_plan_with_what_its_links_carried():
    sent = {"ring": {(0, 1): 1.5, (1, 0): 1.5}, "tree": {(0, 1): 1.0}}
    shown = words(figures.traffic_matrices(sent, 2, "A title"))
    assert shown.count("1.5") == 2 + 4, "on both links, and what each rank sends and receives"
    assert "tree: sent, in tensors, to rank" in shown


def test_expert_loads_name_the_busiest_rank_before_and_after():
    figure = figures.expert_loads({"in order": HOT, "even": [{0: 52}, {1: 52}, {2: 53}]})
    assert "Busiest rank: 2.10 × the mean in order, 1.01 × even" in words(figure)
    assert "dashed: the mean" in figure.axes[-1].get_xlabel()


def test_every_action_is_drawn_with_its_micro_batch():
    figure = FIGURES["one schedule"]()
    assert len([word for word in words(figure) if word == "3"]) >= 3 * 2
    assert len(figure.axes[0].patches) == 3 * 4 * 2


def test_the_title_says_how_long_the_stages_idle_and_the_margin_what_they_hold():
    shown = words(FIGURES["one schedule"]())
    assert "Each stage idles 33% of the step" in shown
    assert shown.count("holds 4") == 3


def test_what_is_held_is_said_in_whole_micro_batches_whatever_the_number_of_chunks():
    shown = words(FIGURES["chunks"]())
    assert [word for word in shown if word.startswith("holds")] == [
        *("holds 5.5", "holds 4.5", "holds 3.5", "holds 2.5"),
        *["holds 4"] * 4,
    ]
    assert "paler: chunk 1" in shown


@pytest.mark.parametrize(("forward", "numbered"), [(1.0, 32), (0.05, 0)])
def test_a_timeline_whose_numbers_do_not_all_fit_has_none(forward, numbered):
    figure = figures.schedule_timeline(simulate(gpipe(2, 8), forward), unit="forwards")
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert sum(text.isdigit() for text in shown) == numbered


def test_forward_is_dark_backward_pale_and_the_weights_half_between():
    def luminance(colour):
        red, green, blue = style.to_rgb(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    forward, weight, backward = (
        luminance(COLOURS[kind]) for kind in ("forward", "backward_weight", "backward")
    )
    assert forward < 0.35 < weight < 0.7 < backward
    assert style.readable_on(COLOURS["forward"]) == style.PAPER
    assert style.readable_on(COLOURS["backward_weight"]) == style.INK


def test_chunks_that_follow_each_other_have_different_colours():
    halves = simulate(interleaved(2, 2, 2), 0.5, 0.5, 0.5)
    bars = figures.schedule_timeline(halves, unit="forwards").axes[0].patches
    assert len({bar.get_facecolor() for bar in bars}) == 4


def test_names_stand_before_what_each_timeline_shows():
    timelines = simulate(gpipe(2, 2)), simulate(gpipe(2, 4))
    shown = words(figures.schedule_timeline(*timelines, names=("A", "B"), unit="forwards"))
    told = {"A: each stage idles 33% of the step", "B: each stage idles 20% of the step"}
    assert told <= set(shown)


@pytest.mark.parametrize(("unit", "scale"), [("forwards", 1), (None, 1000)])
def test_brackets_part_the_warm_up_from_the_steady_state_and_from_the_cool_down(unit, scale):
    each = 1 if unit else 0.01
    makes = gpipe, one_forward_one_backward
    timelines = [simulate(make(3, 6), each, each, each) for make in makes]
    look = {"names": ("GPipe", "1F1B"), "unit": unit, "phases_of": ["1F1B"]}
    first, axes = figures.schedule_timeline(*timelines, **look).axes
    named = [text.get_text() for text in axes.texts]
    assert {"warm-up", "steady state", "cool-down"} <= set(named)
    assert not first.lines
    assert len(axes.lines) == 3, "only stage 0's are named, and brackets need names"
    ends = max(max(line.get_xdata()) for line in axes.lines)
    assert ends == pytest.approx(scale * timelines[1].seconds)


def test_eighty_steps_have_a_tick_every_twenty():
    axes = figures.curves({"a": range(80)}, "step", "", "A title").axes[0]
    assert list(axes.get_xticks()) == [0, 20, 40, 60, 80]


# Ranks in a grid


START = {"order": "tp-cp-ep-dp-pp", "tp": 8, "cp": 1, "ep": 1, "pp": 4, "per_host": 8, "follow": 0}


def dark_cells(figure, axis):
    """For each panel: the cells in the axis' full hue, as numbers counted along the lines."""
    hue = to_rgb(style.AXIS_COLOURS[axis])
    for panel in figure.axes[:1]:
        image = panel.images[0].get_array().reshape(-1, 3)
        yield np.flatnonzero(np.isclose(image, hue).all(axis=1)).tolist()


@pytest.mark.parametrize("name", ["tp", "dp", "pp", "tp-pp"])
def test_the_followed_ranks_group_has_the_full_hue(name):
    grid = RankGrid(32, tp=2, pp=4)
    (cells,) = dark_cells(show_grid(grid, 8, [name], follow=13), name.split("-")[0])
    assert cells == grid.group(name, 13).tolist()


def test_in_a_large_world_a_cell_is_a_host():
    grid = RankGrid(4096, tp=8, pp=16)
    (cells,) = dark_cells(show_grid(grid, 8, ["pp"], follow=70), "pp")
    assert cells == [rank // 8 for rank in grid.group("pp", 70)]


def test_every_panel_has_the_same_places():
    panels = [p for p in show_grid(RankGrid(64, tp=4, cp=2, ep=2, pp=2), 8).axes if p.images]
    assert len(panels) == 5
    assert len({panel.images[0].get_array().shape for panel in panels}) == 1
    assert len({(panel.get_xlim(), panel.get_ylim()) for panel in panels}) == 1


def test_every_kind_of_group_is_drawn_and_a_rank_in_none_is_said():
    figure = show_grid(RankGrid(16, tp=2, pp=4), 8, GROUPS, follow=6)
    headings = [panel.get_title(loc="left") for panel in figure.axes]
    assert "all across hosts · rank 6: in none" in headings
    texts = [text.get_text() for panel in figure.axes for text in panel.texts]
    assert "tp-pp  2 groups of 8" in texts


def test_the_explorer_says_what_leaves_a_host():
    _, sentence = draw_grid(64, **START)
    assert "tp" not in sentence.partition(" is: ")[2]
    _, sentence = draw_grid(64, **{**START, "order": "pp-dp-ep-cp-tp"})
    assert " is: tp " in sentence


def test_the_explorer_marks_what_is_refused_and_what_would_do():
    with pytest.raises(ValueError, match=r"^Refused: 64 ranks cannot hold tp 6 ") as refused:
        draw_grid(64, **{**START, "tp": 6})
    assert str(refused.value).endswith("One change would do: tp 1, 2, 4, 8, 16.")
    with pytest.raises(ValueError, match="16 ranks do not fill hosts of 32"):
        draw_grid(16, **{**START, "tp": 1, "per_host": 32})


def test_the_explorer_redraws_at_each_change():
    box = grid_explorer()
    world, order = box.children[0].children
    picture, sentence = box.children[-2:]
    first = picture.value
    world.value = 128
    assert picture.value != first
    order.value = "tp-dp-pp"
    assert sentence.value != ""
    box.children[2].children[0].value = 2  # ep
    assert sentence.value.startswith("Refused: order 'tp-dp-pp' lacks ep")
    assert picture.value == ""
