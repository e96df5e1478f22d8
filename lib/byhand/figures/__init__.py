"""The course's figures: data in, a matplotlib Figure out. Nothing here starts a rank.

collective_pictures  who holds what before and after a collective
panel_stack          who holds what at several moments
timeline             what each rank did, when
message_diagram      who sent to whom, when
round_picture        one round of an all-reduce: whose terms, whose messages, bytes by link
all_rounds           all rounds of an all-reduce: whose terms each rank holds, and messages
traffic_matrices     who sent how much to whom, for several algorithms
bytes_bars           bytes predicted beside bytes counted
busy_bars            when a wire is busy, and when idle
curves               loss curves, and what a setting does to a time
lanes                what a rank computes, unit by unit, and what travels meanwhile
shards_held          which shards of what each rank holds
mountain             what a rank holds over a training step, by kind
columns              what each choice costs, in several ways at once
layout_seconds       which layout of the ranks is fastest, and what the others wait for
schedule_timeline    which stage of a pipeline computed which micro-batch, when
rank_cube            ranks as blocks of a cube: layers, slices, rows
rank_grid            which ranks form a group along each axis, and on which hosts
expert_loads         rows of each expert by rank, under several placements
block_flow           where a layer's split begins and ends, forward and backward
shard_picture        which rank holds which part of a matrix
seconds_by_size      time over size: measured points, lines, and where lines cross
attention_map        which rank computes which scores, in which round of a ring
every_value          every single value of several series
recorded             the picture of an earlier run, where a machine cannot make its own
save_svg             the same figure gives the same file
save_animated_svg    a figure that time uncovers
"""

from byhand.figures.animated import save_animated_svg
from byhand.figures.attention import attention_map
from byhand.figures.bars import busy_bars, bytes_bars, expert_loads, layout_seconds
from byhand.figures.block import block_flow
from byhand.figures.collective import (
    Block,
    Picture,
    collective_pictures,
    panel_stack,
)
from byhand.figures.columns import columns
from byhand.figures.cube import rank_cube
from byhand.figures.curves import curves, seconds_by_size
from byhand.figures.dots import every_value
from byhand.figures.flat import shards_held
from byhand.figures.grid import rank_grid
from byhand.figures.lanes import Span, lanes
from byhand.figures.messages import message_diagram
from byhand.figures.mountain import mountain
from byhand.figures.recorded import recorded
from byhand.figures.rounds import all_rounds, round_picture, traffic_matrices
from byhand.figures.schedule import schedule_timeline
from byhand.figures.shards import shard_picture
from byhand.figures.style import save_svg
from byhand.figures.timeline import timeline

__all__ = [
    "Block",
    "Picture",
    "Span",
    "all_rounds",
    "attention_map",
    "block_flow",
    "busy_bars",
    "bytes_bars",
    "collective_pictures",
    "columns",
    "curves",
    "every_value",
    "expert_loads",
    "lanes",
    "layout_seconds",
    "message_diagram",
    "mountain",
    "panel_stack",
    "rank_cube",
    "rank_grid",
    "recorded",
    "round_picture",
    "save_animated_svg",
    "save_svg",
    "schedule_timeline",
    "seconds_by_size",
    "shard_picture",
    "shards_held",
    "timeline",
    "traffic_matrices",
]
