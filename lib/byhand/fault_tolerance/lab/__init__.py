"""What lecture 16 runs and draws: runs that die and go on, saves killed at each write.

worker     the program that torchrun starts, and starts again
dying      a run under torchrun of which a rank is killed: what it did, and when
saving     a save that is killed before each of its calls to the disk: what is found afterwards
resuming   runs that stop and go on, in another layout, or with a part of their state forgotten
explore    how often to save, to drag
pictures   all of it, drawn
"""

from byhand.fault_tolerance.lab.dying import Death, kill_one, never_killed
from byhand.fault_tolerance.lab.explore import interval_explorer
from byhand.fault_tolerance.lab.resuming import train
from byhand.fault_tolerance.lab.saving import killed_at_each_call

__all__ = [
    "Death",
    "interval_explorer",
    "kill_one",
    "killed_at_each_call",
    "never_killed",
    "train",
]
