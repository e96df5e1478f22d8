"""What a judge notebook runs in its kernel: stand-ins for the student's names, and %%question.

The kernel is trusted and stays up from one submission to the next, together with the sandbox's
fork server, which has torch loaded and knows no secret. `begin` forgets everything of the
submission before.
"""

from __future__ import annotations

import atexit
import gc
import json
from pathlib import Path

from IPython.core.getipython import get_ipython
from IPython.display import display

from autograder.grade.judge import LIMITS, Judge, Plan
from autograder.places import COURSE
from byhand.runtime import set_default
from byhand.runtime.walls.gpus import Gpus
from byhand.runtime.walls.isolation import NONE, Level, best_level
from byhand.runtime.walls.question import Sandbox

MIME = "application/vnd.byhand.verdict+json"
NOTES_MIME = "application/vnd.byhand.notes+json"


class Session:
    """What lives as long as the kernel: the launcher, and the judge of the current submission."""

    launcher: Sandbox | None = None
    level: Level = Level(NONE)
    judge: Judge | None = None
    secret: str = ""


def launcher(sandboxed: bool, hide: list[str], gpus: Gpus) -> Sandbox:
    """The fork server in its sandbox, started at first need.

    Raises:
        RuntimeError: there is no sandbox, or it cannot use the GPUs.
    """
    if Session.launcher is None:
        Session.level = Level(NONE)
        if sandboxed:
            Session.level = best_level([COURSE, *hide], gpus.files)
        if sandboxed and Session.level.name == NONE:
            raise RuntimeError("no sandbox stands in this kernel")
        Session.launcher = Sandbox(Session.level.command, gpus=gpus)
        atexit.register(Session.launcher.close)
        if reason := Session.launcher.why_no_gpus(gpus.limits(LIMITS), Session.level.nests):
            raise RuntimeError(reason)
        gc.collect()
        gc.freeze()  # what is loaded by now stays: forgetting a submission need not look at it
    return Session.launcher


def begin(plan_file: str, seed: int, sandboxed: bool, hide: list[str], gpus: list) -> None:
    """Make this kernel ready for one submission, whose plan lies in `plan_file`.

    `gpus`: how many its ranks get, and the backend.
    """
    shell = get_ipython()
    shell.reset(new_session=False)
    shell.register_magic_function(question, "cell", "question")
    set_default(None)
    plan = Plan.from_dict(json.loads(Path(plan_file).read_text()))
    ranks = launcher(sandboxed, hide, Gpus(*gpus))
    Session.judge = Judge(plan, ranks, shell.user_ns, seed=seed, isolate=Session.level.nests)
    _show(NOTES_MIME, Session.judge.notes, "\n".join(Session.judge.notes))


def question(line: str, cell: str) -> None:
    """The %%question magic: judge the test cell below it, and show the verdict as data."""
    asked = next(q for q in Session.judge.plan.questions if q.name == line.strip())
    verdict = Session.judge.ask(asked)
    _show(MIME, verdict.as_dict(), f"{verdict.verdict} {verdict.message}".strip())


def _show(mime: str, data: object, text: str) -> None:
    display({mime: data, "text/plain": text}, raw=True)
