"""The judge: the instructor's test cells, against student code that runs somewhere else.

Test cells run here, in a trusted kernel that papermill drives (notebook.py). The student's
functions are stand-ins here; they become themselves only on the ranks of a sandbox, where the
student's cells ran first. One sandbox for each question, so that a hang costs one question.

The kernel stays up from one submission to the next, together with the sandbox's fork server, which
has torch loaded and knows no secret. `begin` forgets everything of the submission before.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display

from autograder.grade import suspicions, verdicts
from autograder.grade.plan import LIMITS, MIME, NOTES_MIME, Plan, Question
from autograder.grade.verdicts import Verdict
from autograder.places import COURSE
from byhand import check
from byhand.runtime import Launcher, LaunchError, Run, StandIn, set_default
from byhand.runtime.walls.gpus import Gpus
from byhand.runtime.walls.isolation import NONE, Level, best_level
from byhand.runtime.walls.prelude import ALL_SECONDS, CELL_SECONDS, NOT_BEGUN
from byhand.runtime.walls.question import Sandbox

_ON_A_RANK = "launch was called on a rank"


class Session:
    """What lives as long as the kernel: the launcher, and the judge of the current submission."""

    launcher: Sandbox | None = None
    level: Level = Level(NONE)
    judge: Judge | None = None


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


class Judge:
    """Asks one submission's questions, in order, in one namespace of the instructor's names."""

    def __init__(
        self,
        plan: Plan,
        launcher: Sandbox,
        namespace: dict[str, Any],
        *,
        seed: int = 0,
        isolate: bool = True,
    ):
        self.plan = plan
        self.launcher = launcher
        self.gpus = launcher.gpus
        self.isolate = isolate
        self.namespace = namespace
        check.set_seed(seed)
        namespace.update({name: StandIn(name) for name in plan.stand_ins})
        self.left_out, self.notes = self.rehearse()

    def rehearse(self) -> tuple[set[str], list[str]]:
        """Run the student's cells once; which to leave out, and what to say of those that fail.

        A cell that never ends, ends its process, or comes when ALL_SECONDS are over is left out of
        every question, so that it costs only what depends on it and not its time at each launch.
        """
        cells = self.plan.questions[-1].cells if self.plan.questions else []
        try:
            notes = self._try(cells, min(CELL_SECONDS * len(cells), ALL_SECONDS) + 2 * CELL_SECONDS)
        except LaunchError:
            return self._rehearse_one_by_one(cells)
        labels = [label for label, _ in cells]
        late = next(
            (labels[i:] for i, label in enumerate(labels) if f"cell {label}: {NOT_BEGUN}" in notes),
            [],
        )
        slow = [label for label in labels if label not in late and _timed_out(label, notes)]
        return {*slow, *late}, _worth_telling(notes) + _never_end(slow) + _too_late(late)

    def _rehearse_one_by_one(self, cells: list[tuple[str, str]]) -> tuple[set[str], list[str]]:
        kept: list[tuple[str, str]] = []
        bad: list[str] = []
        notes: list[str] = []
        end = time.monotonic() + ALL_SECONDS * self.gpus.patience
        for cell in cells:
            if time.monotonic() > end:
                break
            try:
                notes = self._try([*kept, cell], (CELL_SECONDS + 1) * self.gpus.patience)
                if _timed_out(cell[0], notes):
                    bad.append(cell[0])
                else:
                    kept.append(cell)
            except LaunchError:
                bad.append(cell[0])
        late = [label for label, _ in cells[len(kept) + len(bad) :]]
        return {*bad, *late}, _worth_telling(notes) + _never_end(bad) + _too_late(late)

    def _try(self, cells: list[tuple[str, str]], seconds: float) -> list[str]:
        limits = self.plan.questions[-1].limits
        sandbox = self.launcher.fresh(
            isolate=self.isolate, prelude=cells, limits=limits, until=time.monotonic() + seconds
        )
        try:
            return sandbox.launch(int, 1, setup=False, alone=True).notes
        finally:
            sandbox.close()

    def ask(self, question: Question) -> Verdict:
        """The verdict on one question; one that could not be judged is asked a second time."""
        verdict = self._ask(question)
        if verdicts.without_score(verdict):
            verdict = self._ask(question)
        return verdicts.explained(verdict, [n for n in self.notes if "left out" in n])

    def _ask(self, question: Question) -> Verdict:
        began = time.monotonic()
        cells = [cell for cell in question.cells if cell[0] not in self.left_out]
        try:
            sandbox = self.launcher.fresh(
                isolate=self.isolate,
                prelude=cells,
                limits=question.limits,
                until=began + question.limit,
            )
        except LaunchError as error:
            return verdicts.infrastructure(question.name, question.points, str(error))
        before, runs = set_default(sandbox), _watched(sandbox)
        try:
            exec(compile(question.source, f"<{question.name}>", "exec"), self.namespace)
            verdict = verdicts.passed(question.name, question.points, time.monotonic() - began)
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
        if verdict.verdict != verdicts.PASSED and (lost := self._lost_gpus(question)):
            return verdicts.infrastructure(question.name, question.points, lost)
        return replace(
            verdict,
            ranks=max((run.world_size for run in runs), default=0),
            peak_bytes=max((max(run.peak_bytes or [0]) for run in runs), default=0),
            suspicion=next(filter(None, map(suspicions.of_run, runs)), ""),
        )

    def _lost_gpus(self, question: Question) -> str | None:
        """Why it was the machine's fault: its GPUs fail a rank that no student wrote, too."""
        return self.launcher.why_no_gpus(question.limits, self.isolate)


def _watched(sandbox: Launcher) -> list[Run]:
    """A list that fills with what each launch gives back."""
    launch, runs = sandbox.launch, []

    @functools.wraps(launch)
    def watched(*args: Any, **options: Any) -> Run:
        run = launch(*args, **options)
        runs.append(replace(run, results=[None] * run.world_size, output=[]))  # those may be large
        return run

    sandbox.launch = watched
    return runs


def _timed_out(label: str, notes: list[str]) -> bool:
    return any(note.startswith(f"cell {label}: CellTimeout") for note in notes)


def _worth_telling(notes: list[str]) -> list[str]:
    """Notes on cells that failed by themselves: not those that launch ranks, as a notebook may."""
    return [note for note in notes if "CellTimeout" not in note and _ON_A_RANK not in note]


def _never_end(labels: list[str]) -> list[str]:
    return [
        f"cell {label}: it did not come to an end within {CELL_SECONDS:.0f} s, or ended the"
        " whole program; it was left out"
        for label in sorted(labels)
    ]


def _too_late(labels: list[str]) -> list[str]:
    """One note for all: there may be hundreds."""
    why = f"the cells before took the {ALL_SECONDS:.0f} s that all cells together have"
    return [f"cells {', '.join(labels)}: not run, as {why}; they were left out"] if labels else []
