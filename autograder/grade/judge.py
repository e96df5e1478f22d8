"""The judge: the instructor's test cells, against student code that runs somewhere else.

Test cells run here, in a trusted process. The student's functions are stand-ins here; they become
themselves only on the ranks of a sandbox, where the student's cells ran first. One sandbox for
each question, so that a hang costs one question.

`judge_cells` judges in this process; judge_notebook.py does the same in a kernel that papermill
drives. Both ask each question through `Judge.ask`.
"""

from __future__ import annotations

import functools
import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from autograder.cells import defined_names, is_grade, is_locked, is_solution
from autograder.grade import verdicts
from autograder.grade.verdicts import Verdict
from byhand import check
from byhand.runtime import Launcher, LaunchError, Run, StandIn, set_default
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.prelude import ALL_SECONDS, CELL_SECONDS, NOT_BEGUN
from byhand.runtime.walls.question import Sandbox

if TYPE_CHECKING:
    from nbformat import NotebookNode

LIMIT_SECONDS = 30.0
_ON_A_RANK = "launch was called on a rank"
LIMITS = {
    "memory_bytes": 1 << 30,  # that a rank may write to; torch takes 0.3 GB of it
    "address_bytes": 16 << 30,  # mapped, read-only libraries included
    "processes": 48,  # of each rank, threads included
    "cpu_seconds": 120,
    "file_bytes": 64 << 20,
    "scratch_bytes": 64 << 20,  # each rank's /tmp
    "open_files": 256,
    "output_bytes": 4 << 20,
    "log_bytes": 32 << 20,
    "reply_bytes": 256 << 20,
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

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """The plan that `as_dict` turned into `data`."""
        questions = [Question(**{**q, "cells": [tuple(c) for c in q["cells"]]})
                     for q in data["questions"]]  # fmt: skip
        return cls(data["stand_ins"], data["preparation"], questions)


def plan(source: NotebookNode, student: NotebookNode, limit: float | None = None,
         gpus: Gpus = NO_GPUS) -> Plan:  # fmt: skip
    """The questions of a source notebook, each with the cells of a restored submission.

    Only names that the source's solution cells define become stand-ins: nothing that a student
    wrote gives a name, or anything else, to the judge. `limit` overrides each cell's own
    `metadata.limit_seconds`. `metadata.limits` of a locked cell changes some of LIMITS for the
    assignment, and that of a test cell for its question. `gpus` changes both as CUDA needs.
    """
    limits = dict(LIMITS)
    names: list[str] = []
    preparation: list[str] = []
    questions: list[Question] = []
    for cell in source.cells:
        if cell.cell_type != "code":
            continue
        if is_solution(cell):
            names += defined_names(cell.source)
        elif is_grade(cell):
            usual = float(cell.metadata.get("limit_seconds", LIMIT_SECONDS)) * gpus.patience
            own = gpus.limits({**limits, **cell.metadata.get("limits", {})})
            questions.append(
                Question(cell.id, cell.metadata.nbgrader.points, cell.source,
                         cells_before(student, cell.id), limit or usual, own))  # fmt: skip
        elif is_locked(cell):
            limits.update(cell.metadata.get("limits", {}))
            preparation.append(cell.source)
    return Plan(list(dict.fromkeys(names)), preparation, questions)


def cells_before(student: NotebookNode, test: str) -> list[tuple[str, str]]:
    """(label, text) of the code cells of a restored notebook before this test, tests left out."""
    cells = []
    for cell in student.cells:
        if cell.id == test:
            break
        if cell.cell_type == "code" and (is_solution(cell) or not is_grade(cell)):
            cells.append((cell.id, cell.source))
    return [cell for cell in cells if cell[1].strip()]


class Judge:
    """Asks one submission's questions, in order, in one namespace of the instructor's names."""

    def __init__(self, plan: Plan, launcher: Sandbox, namespace: dict[str, Any], *,
                 seed: int = 0, isolate: bool = True):  # fmt: skip
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
        late = next((labels[i:] for i, label in enumerate(labels)
                     if f"cell {label}: {NOT_BEGUN}" in notes), [])  # fmt: skip
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
        sandbox = self.launcher.fresh(isolate=self.isolate, prelude=cells, limits=limits,
                                      until=time.monotonic() + seconds)  # fmt: skip
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
            sandbox = self.launcher.fresh(isolate=self.isolate, prelude=cells,
                                          limits=question.limits,
                                          until=began + question.limit)  # fmt: skip
        except LaunchError as error:
            return verdicts.infrastructure(question.name, question.points, str(error))
        before, peaks = set_default(sandbox), _watched(sandbox)
        try:
            exec(compile(question.source, f"<{question.name}>", "exec"), self.namespace)
            verdict = verdicts.passed(question.name, question.points, time.monotonic() - began)
        except Exception as error:
            verdict = verdicts.failed(question.name, question.points, question.source, error,
                                      question.limit, time.monotonic() - began)  # fmt: skip
        finally:
            set_default(before)
            sandbox.close()
        if verdict.verdict != verdicts.PASSED and (lost := self._lost_gpus(question)):
            return verdicts.infrastructure(question.name, question.points, lost)
        return replace(verdict, peak_bytes=max(peaks, default=0))

    def _lost_gpus(self, question: Question) -> str | None:
        """Why it was the machine's fault: its GPUs fail a rank that no student wrote, too."""
        return self.launcher.why_no_gpus(question.limits, self.isolate)


def _watched(sandbox: Launcher) -> list[int]:
    """A list that fills with the most bytes that a rank held, one number for each launch."""
    launch, peaks = sandbox.launch, []

    @functools.wraps(launch)
    def watched(*args: Any, **options: Any) -> Run:
        run = launch(*args, **options)
        peaks.append(max(run.peak_bytes or [0]))
        return run

    sandbox.launch = watched
    return peaks


def judge_cells(
    source: NotebookNode,
    student: NotebookNode,
    launcher: Sandbox,
    *,
    seed: int = 0,
    limit: float | None = None,
    isolate: bool = True,
) -> list[Verdict]:
    """Judge a restored notebook in this process; a verdict for each test cell of the source."""
    todo = plan(source, student, limit, launcher.gpus)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    judge = Judge(todo, launcher, namespace, seed=seed, isolate=isolate)
    for text in todo.preparation:
        exec(compile(text, "<imports>", "exec"), namespace)
    return [judge.ask(question) for question in todo.questions]


def _timed_out(label: str, notes: list[str]) -> bool:
    return any(note.startswith(f"cell {label}: CellTimeout") for note in notes)


def _worth_telling(notes: list[str]) -> list[str]:
    """Notes on cells that failed by themselves: not those that launch ranks, as a notebook may."""
    return [note for note in notes if "CellTimeout" not in note and _ON_A_RANK not in note]


def _never_end(labels: list[str]) -> list[str]:
    return [f"cell {label}: it did not come to an end within {CELL_SECONDS:.0f} s, or ended the"
            " whole program; it was left out" for label in sorted(labels)]  # fmt: skip


def _too_late(labels: list[str]) -> list[str]:
    """One note for all: there may be hundreds."""
    why = f"the cells before took the {ALL_SECONDS:.0f} s that all cells together have"
    return [f"cells {', '.join(labels)}: not run, as {why}; they were left out"] if labels else []
