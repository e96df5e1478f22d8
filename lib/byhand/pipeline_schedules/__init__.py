"""Pipeline schedules as data: per stage a list of actions. Pure integers, no torch.

orders      gpipe, one_forward_one_backward and those after them: read this
actions     what an action needs and makes; check: whether a schedule can run
routes      which stage keeps which part of the model: a line, a loop, a V
simulation  simulate: when each action runs, on paper
search      find: a schedule that nobody wrote down, under a limit on memory
drafts      a schedule half made, which `find` completes
lab         what lecture 10 runs, draws and lets one drag
"""

from byhand.pipeline_schedules.actions import Action, Schedule, ScheduleError, check
from byhand.pipeline_schedules.orders import (
    breadth_first,
    dual_pipe_v,
    gpipe,
    interleaved,
    one_forward_one_backward,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)
from byhand.pipeline_schedules.routes import Route, loop, there_and_back
from byhand.pipeline_schedules.search import find
from byhand.pipeline_schedules.simulation import Span, Timeline, simulate

__all__ = [
    "Action",
    "Route",
    "Schedule",
    "ScheduleError",
    "Span",
    "Timeline",
    "breadth_first",
    "check",
    "dual_pipe_v",
    "find",
    "gpipe",
    "interleaved",
    "loop",
    "one_forward_one_backward",
    "simulate",
    "there_and_back",
    "zero_bubble_h1",
    "zero_bubble_h2",
    "zero_bubble_v",
]
