"""What lecture 15 draws: see byhand.memory.lab."""

from __future__ import annotations

from byhand.figures.mountain import Held, mountain
from byhand.figures.style import CourseFigure
from byhand.memory.lab import Profile


def mountains(profiles: dict[str, Profile], title: str) -> CourseFigure:
    """What a rank held over a step, a panel for each."""
    return mountain({name: held_over(one) for name, one in profiles.items()}, title)


def held_over(one: Profile) -> Held:
    """As a mountain has it."""
    middle, end = one.marks
    phases = {"forward": middle, "backward": end, "optimizer": len(one.samples)}
    return Held(one.samples, one.state, phases)
