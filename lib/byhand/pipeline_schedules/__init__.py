"""Pipeline schedules as data: per stage a list of actions. Pure integers, no torch.

orders      gpipe, one_forward_one_backward and those after them: read this
actions     what an action needs and makes; check: whether a schedule can run
simulation  simulate: when each action runs, on paper
"""

from byhand.pipeline_schedules.actions import Action, Schedule, ScheduleError, check
from byhand.pipeline_schedules.orders import (
    gpipe,
    interleaved,
    one_forward_one_backward,
    zero_bubble_h1,
)
from byhand.pipeline_schedules.simulation import Span, Timeline, simulate

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
