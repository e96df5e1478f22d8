"""Pipeline schedules as data: per stage a list of actions. Pure integers, no torch.

orders    gpipe, one_forward_one_backward and those after them; simulate: read this
actions   what an action needs and makes; check: whether a schedule can run
"""

from byhand.pipeline_schedules.actions import Action, Schedule, ScheduleError, check
from byhand.pipeline_schedules.orders import (
    Span,
    Timeline,
    gpipe,
    interleaved,
    one_forward_one_backward,
    simulate,
    zero_bubble_h1,
)

__all__ = [
    "Action",
    "Schedule",
    "ScheduleError",
    "Span",
    "Timeline",
    "check",
    "gpipe",
    "interleaved",
    "one_forward_one_backward",
    "simulate",
    "zero_bubble_h1",
]
