"""The judge: the instructor's test cells, against student code that runs somewhere else.

Test cells run here, in a trusted kernel that papermill drives (notebook.py). The student's
functions are stand-ins here. Grading is what Jupyter does: the student's cells run once, in order,
each test after those before it, in a notebook of their own behind walls; a launch takes from there
what it names, by value, to ranks that are clean. One sandbox for each question, so that a hang
costs one question.

The kernel stays up from one submission to the next, together with the sandbox's fork server, which
has torch loaded and knows no secret. `begin` forgets everything of the submission before.
"""

import atexit
import gc
import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from IPython.core.getipython import get_ipython
from IPython.display import display

from autograder.grade import suspicions, turns, verdicts
from autograder.grade.verdicts import Verdict
from autograder.places import COURSE
from byhand import check
from byhand.runtime import LaunchError, StandIn, set_default
from byhand.runtime.walls.cells import students_notebook
from byhand.runtime.walls.gpus import Gpus
from byhand.runtime.walls.isolation import sandbox_command
from byhand.runtime.walls.question import Question as Launches
from byhand.runtime.walls.question import Sandbox

LITTLE = 0.05  # of a question's limit: taken by other programs, it made no difference
MIME = "application/vnd.byhand.verdict+json"  # of a verdict, as a display of the judge's notebook
NOTES_MIME = "application/vnd.byhand.notes+json"
LIMIT_SECONDS = 30.0
LIMITS = {
    "memory_bytes": 1 << 30,  # that a rank may write to; torch takes 0.3 GB of it
    "processes": 48,  # of each rank, threads included
    "file_bytes": 64 << 20,
    "scratch_bytes": 256 << 20,  # of a question: its /tmp
    "open_files": 256,
    "output_bytes": 4 << 20,
    "log_bytes": 12 << 20,
    "reply_bytes": 64 << 20,  # of all ranks of a launch together
}


@dataclass(frozen=True)
class Question:
    """A test cell: its name, points, text with hidden tests, and the student's cells before it."""

    name: str
    points: int
    source: str
    cells: list[tuple[str, str]]
    limit: float = LIMIT_SECONDS
    limits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """All that the judge needs of one submission, as plain data."""

    stand_ins: list[str]
    preparation: list[str]
    questions: list[Question]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The plan whose fields JSON holds."""
        data = json.loads(text)
        return cls(**{**data, "questions": [Question(**one) for one in data["questions"]]})


class Session:
    """What lives as long as the kernel: the launcher, and the judge of the current submission."""

    launcher: Sandbox | None = None
    judge: "Judge | None" = None


def launcher(sandboxed: bool, hide: list[str], gpus: Gpus) -> Sandbox:
    """The fork server in its sandbox, started at first need.

    Raises:
        RuntimeError: it cannot use the GPUs.
    """
    if Session.launcher is None:
        command = sandbox_command([COURSE, *hide], gpus.files) if sandboxed else ()
        Session.launcher = Sandbox(command, gpus)
        atexit.register(Session.launcher.close)
        if reason := Session.launcher.why_no_gpus(gpus.limits(LIMITS)):
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
    plan = Plan.from_json(Path(plan_file).read_text())
    ranks = launcher(sandboxed, hide, Gpus(*gpus))
    if Session.judge is not None:
        Session.judge.close()
    Session.judge = Judge(plan, ranks, shell.user_ns, seed=seed)


def question(line: str, cell: str) -> None:
    """The %%question magic: judge the test cell below it, and show the verdict as data."""
    asked = next(q for q in Session.judge.plan.questions if q.name == line.strip())
    verdict = Session.judge.ask(asked)
    _show(NOTES_MIME, Session.judge.notes, "\n".join(Session.judge.notes))
    _show(MIME, asdict(verdict), f"{verdict.verdict} {verdict.message}".strip())


def _show(mime: str, data: object, text: str) -> None:
    display({mime: data, "text/plain": text}, raw=True)


class Judge:
    """Asks one submission's questions, in order, in one namespace of the instructor's names."""

    def __init__(
        self,
        plan: Plan,
        launcher: Sandbox,
        namespace: dict[str, Any],
        *,
        seed: int = 0,
    ):
        self.plan = plan
        self.launcher = launcher
        self.gpus = launcher.gpus
        self.namespace = namespace
        check.set_seed(seed)
        namespace.update({name: StandIn(name) for name in plan.stand_ins})
        limits = plan.questions[-1].limits if plan.questions else {}
        self.notebook = students_notebook(launcher, limits)

    @property
    def notes(self) -> list[str]:
        """What is to be told of the student's cells that have run, and failed."""
        return [f"cell {label}: {note}" for label, note in self.notebook.notes.items()]

    def ask(self, question: Question) -> Verdict:
        """The verdict on one question.

        One that could not be judged is asked a second time. So is one that took too long, or was
        short of memory, where other programs may have been the cause: alone, as far as other
        judges go.
        """
        with turns.beside_others():
            verdict, waited = self._ask(question)
            if verdicts.without_score(verdict):
                verdict, waited = self._ask(question)
        if verdict.verdict in (verdicts.TIMEOUT, verdicts.RESOURCE):
            if waited > LITTLE * question.limit or not turns.is_alone():
                with turns.alone():
                    verdict, _ = self._ask(question)
        if question is self.plan.questions[-1]:
            self.close()
        return verdict

    def close(self) -> None:
        """End the student's notebook."""
        self.notebook.close()

    def _ask(self, question: Question) -> tuple[Verdict, float]:
        """A verdict, and the seconds that other programs took from the question's ranks."""
        try:
            self.notebook.run(question.cells)
            sandbox = self.launcher.fresh(
                notebook=self.notebook, limits=question.limits, seconds=question.limit
            )
        except LaunchError as error:
            return verdicts.infrastructure(question.name, question.points, str(error)), 0.0
        return self._judged(question, sandbox), sandbox.waited

    def _judged(self, question: Question, sandbox: Launches) -> Verdict:
        began = time.monotonic()
        before, runs = set_default(sandbox), sandbox.runs
        check.take_record()  # of another test
        try:
            exec(compile(question.source, f"<{question.name}>", "exec"), self.namespace)
            seconds = time.monotonic() - began
            verdict = verdicts.passed(question.name, question.points, seconds, check.take_record())
        except Exception as error:
            verdict = verdicts.failed(
                question.name,
                question.points,
                question.source,
                error,
                question.limit,
                time.monotonic() - began,
            )
        finally:
            set_default(before)
            sandbox.close()
        if verdict.verdict != verdicts.PASSED:  # do the GPUs fail a rank that no student wrote?
            if lost := self.launcher.why_no_gpus(question.limits):
                return verdicts.infrastructure(question.name, question.points, lost)
        return replace(
            verdict,
            ranks=max((run.world_size for run in runs), default=0),
            peak_bytes=max((max(run.peak_bytes or [0]) for run in runs), default=0),
            suspicion=next(filter(None, map(suspicions.of_run, runs)), ""),
        )
