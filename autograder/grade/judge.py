"""The judge: the instructor's test cells, against student code that runs somewhere else.

Test cells run here, in a trusted kernel that papermill drives (notebook.py). The student's
functions are stand-ins here. Grading is what Jupyter does: the student's cells run once, in order,
in a notebook of their own behind walls, and a test gets what they had defined where it stands. All
of them run before the first test, and then their notebook ends: so no rank can tell it what a
hidden test gave it. A launch takes what it names, by value, to ranks that are clean. One sandbox
for each question, so that a hang costs one question.

The kernel stays up from one submission to the next, together with the sandbox's fork server, which
has torch loaded and knows no secret. `begin` forgets everything of the submission before.
"""

import atexit
import gc
import pickle
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display

from autograder.grade import suspicions, verdicts
from autograder.grade.verdicts import Verdict
from autograder.places import COURSE
from byhand import check
from byhand.runtime import LaunchError, StandIn, set_default
from byhand.runtime.walls.cells import students_notebook
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.isolation import sandbox_command
from byhand.runtime.walls.question import QuestionLauncher, Sandbox
from byhand.runtime.walls.snapshot import Snapshot

MIME = "application/vnd.byhand.verdict+json"  # of a verdict, as a display of the judge's notebook
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
    """A test cell: its name, points, text with hidden tests, and the student's cells before it.

    `own`: the labels of those cells that the exercise does not have.
    """

    name: str
    points: int
    source: str
    cells: list[tuple[str, str]]
    limit: float = LIMIT_SECONDS
    own: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """One submission as the judge gets it, and the seed and the sandbox to judge it in.

    `hide`: folders that no rank sees.
    """

    stand_ins: list[str]
    preparation: list[str]
    questions: list[Question]
    seed: int = 0
    sandboxed: bool = True
    hide: tuple[Path, ...] = ()
    gpus: Gpus = NO_GPUS


class Session:
    """What lives as long as the kernel: the launcher, and the judge of the current submission."""

    launcher: Sandbox | None = None
    judge: "Judge | None" = None


def launcher(case: Case) -> Sandbox:
    """The fork server in its sandbox, started at first need.

    Raises:
        RuntimeError: it cannot use the GPUs.
    """
    if Session.launcher is None:
        command = sandbox_command([COURSE, *case.hide], case.gpus.files) if case.sandboxed else ()
        Session.launcher = Sandbox(command, case.gpus)
        atexit.register(Session.launcher.close)
        if reason := Session.launcher.why_no_gpus(case.gpus.limits(LIMITS)):
            raise RuntimeError(reason)
        gc.collect()
        gc.freeze()  # what is loaded by now stays: forgetting a submission need not look at it
    return Session.launcher


def begin(case_file: str) -> None:
    """Make this kernel ready for one submission, whose case lies in `case_file`."""
    shell: Any = get_ipython()
    shell.reset(new_session=False)
    shell.register_magic_function(question, "cell", "question")
    set_default(None)
    if Session.judge is not None:
        Session.judge.close()
    case = pickle.loads(Path(case_file).read_bytes())
    Session.judge = Judge(case, launcher(case), shell.user_ns)


def question(line: str, cell: str) -> None:
    """The %%question magic: judge the test cell below it, and show the verdict as data."""
    judge = Session.judge
    assert judge is not None, "this kernel has begun no submission"
    asked = next(q for q in judge.case.questions if q.name == line.strip())
    verdict = judge.ask(asked)
    said = {"verdict": asdict(verdict), "notes": judge.notes}
    display({MIME: said, "text/plain": f"{verdict.verdict} {verdict.message}"}, raw=True)


class Judge:
    """Asks one submission's questions, in order, in one namespace of the instructor's names."""

    def __init__(self, case: Case, launcher: Sandbox, namespace: dict[str, Any]):
        self.case = case
        self.launcher = launcher
        self.limits = launcher.gpus.limits(LIMITS)
        self.namespace = namespace
        check.set_seed(case.seed)
        namespace.update({name: StandIn(name) for name in case.stand_ins})
        self.notebook = students_notebook(launcher, self.limits)
        self._taken: dict[str, Snapshot] = {}  # by question

    @property
    def notes(self) -> list[str]:
        """What is to be told of the student's cells that have run, and failed."""
        return [f"cell {label}: {note}" for label, note in self.notebook.notes.items()]

    def close(self) -> None:
        """End the student's notebook."""
        self.notebook.close()

    def ask(self, question: Question) -> Verdict:
        """The verdict on one question."""
        try:
            sandbox = self.launcher.fresh(
                notebook=self._notebook_at(question), limits=self.limits, seconds=question.limit
            )
            return self._verdict_on(question, sandbox)
        except LaunchError as error:
            return verdicts.infrastructure(question.name, question.points, str(error))

    def _notebook_at(self, question: Question) -> Snapshot:
        """What the student's cells before this question had defined; no cell runs after that.

        Raises:
            LaunchError: no process can be made for them.
        """
        if question.name not in self._taken:
            try:
                for each in self.case.questions:
                    self.notebook.run(each.cells, each.own)
                    self._taken[each.name] = Snapshot(self.notebook, self._named_in(each))
            finally:
                self.close()
        return self._taken[question.name]

    def _named_in(self, question: Question) -> list[str]:
        """The stand-ins that this test can name: its text, or that of the cells it builds on."""
        text = "\n".join([*self.case.preparation, question.source])
        return [name for name in self.case.stand_ins if re.search(rf"\b{name}\b", text)]

    def _verdict_on(self, question: Question, sandbox: QuestionLauncher) -> Verdict:
        began = time.monotonic()
        before, runs = set_default(sandbox), sandbox.runs
        check.take_board()  # of another test
        try:
            exec(compile(question.source, f"<{question.name}>", "exec"), self.namespace)
            seconds = time.monotonic() - began
            on_board = check.take_board()
            verdict = verdicts.passed(question.name, question.points, seconds, on_board)
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
            if lost := self.launcher.why_no_gpus(self.limits):
                return verdicts.infrastructure(question.name, question.points, lost)
        return replace(verdict, suspicion=next(filter(None, map(suspicions.of_run, runs)), ""))
