"""The engine: intake, judge, journal, for one submission at a time.

`autograder grade`, `nbgrader autograde` and the formgrader's button all end here.
"""

import contextlib
import datetime
import functools
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbformat import NotebookNode

from autograder.cells import is_grade, is_solution
from autograder.collect.door import hand_ins, opened
from autograder.grade import intake, suspicions
from autograder.grade.journal import Journal, Judgement, default_seed, environment, judgement_key
from autograder.grade.verdicts import Verdict, no_answer, or_blank
from autograder.places import CourseError, Places
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.isolation import why_no_sandbox
from byhand.runtime.walls.namespaces import python_folders

if TYPE_CHECKING:  # it brings a kernel, and is imported where there is something to judge
    from autograder.grade.warm_kernel import WarmKernel


@dataclass(frozen=True)
class Submission:
    """One student's hand-in for one assignment, rebuilt, with its key in the journal.

    `standing` and `why` are the door's, where there is nothing to judge.
    """

    student: str
    assignment: str
    intake: intake.Intake
    key: str
    standing: str = ""
    why: str = ""


class Grader(contextlib.AbstractContextManager):
    """Grades submissions of one class; holds the warm kernel and the journal.

    `gpus` are what ranks get, as devices.py decided. Only judging loads torch and papermill: a run
    that finds all judged is done before they are.

    Raises:
        CourseError: there is no sandbox here and `sandboxed` was not turned off.
    """

    def __init__(
        self,
        where: Places,
        *,
        sandboxed: bool = True,
        seed: int | None = None,
        limit: float | None = None,
        gpus: Gpus = NO_GPUS,
    ):
        if sandboxed and (reason := why_no_sandbox()):
            raise CourseError(
                f"Submissions run only in a sandbox, and there is none here: {reason}. To grade"
                " notebooks that you trust as your own, add --unsandboxed."
            )
        for place in (where.course, where.class_dir) if sandboxed else ():
            if any(place.resolve().is_relative_to(seen) for seen in python_folders()):
                raise CourseError(
                    f"{place} lies inside this Python's own folder, {sys.prefix}, which every"
                    " submission sees: move it out, or make the environment somewhere else."
                )
        self.where = where
        # What separates student code from this process; recorded with each grade.
        self.level = "bubblewrap" if sandboxed else "none"
        self.seed = seed
        self.limit = limit
        self.gpus = gpus
        self.journal = Journal(where.journal)
        self._notebooks: dict[Path, tuple[int, NotebookNode]] = {}

    def take_in(self, student: str, assignment: str) -> Submission:
        """Read and rebuild what a student handed in. Never raises for the student's files."""
        source = self.read(self.where.source(assignment))
        cells, standing, why = opened(self.where, student, assignment)
        restored = intake.rebuild(cells, self.read(self.released(assignment)))
        about = [student, assignment, *restored.notes, standing, why]
        means = f"{self.means}, seed {self.seed_of(source)}"
        key = judgement_key(about, restored.notebook, source, means)
        return Submission(student, assignment, restored, key, standing, why)

    def judgement_on(self, submission: Submission) -> Judgement:
        """The judgement on a submission: from the journal, or made now and written there."""
        known = self.journal.find(submission.key)
        return self.journal.count(known or self.new_judgement(submission))

    def new_judgement(self, submission: Submission) -> Judgement:
        """A judgement made now, and written nowhere. Raises what WarmKernel.judge raises."""
        from autograder.grade.warm_kernel import case_of

        source, began = self.read(self.where.source(submission.assignment)), time.monotonic()
        case = case_of(source, submission.intake.notebook, self.limit, self.gpus)
        if submission.standing:
            about = submission.standing, submission.why
            nothing = [no_answer(q.name, q.points, *about) for q in case.questions]
            return self._judgement(submission, nothing, [], began)
        said = self.kernel.judge(case, self.seed_of(source))
        released = self.read(self.released(submission.assignment))
        untouched = intake.unanswered(submission.intake.notebook, released, source)
        found = [or_blank(verdict, untouched) for verdict in said.verdicts]
        return self._judgement(submission, found, said.notes, began)

    @functools.cached_property
    def kernel(self) -> "WarmKernel":
        """Made when something is to be judged."""
        from autograder.grade.warm_kernel import WarmKernel

        hide = self.where.course, self.where.class_dir
        return WarmKernel(self.level != "none", hide, self.gpus)

    def close(self) -> None:
        """End the judge's kernel, if one was made."""
        if "kernel" in vars(self):
            self.kernel.close()

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def means(self) -> str:
        """All but the submission and the tests that a judgement's key is made from."""
        return f"{environment()}, sandbox {self.level}, {self.gpus}"

    def seed_of(self, source: NotebookNode) -> int:
        """The seed of this assignment's random inputs."""
        return default_seed(source) if self.seed is None else self.seed

    def released(self, assignment: str) -> Path:
        """The released notebook.

        Raises:
            CourseError: it was not released yet.
        """
        path = self.where.released(assignment)
        if not path.exists():
            raise CourseError(f"{path} does not exist yet: run autograder release {assignment}")
        return path

    def read(self, path: Path) -> NotebookNode:
        """A notebook of the course, read again only when it changed."""
        changed = path.stat().st_mtime_ns
        if self._notebooks.get(path, (0, None))[0] != changed:
            self._notebooks[path] = (changed, nbformat.read(path, as_version=4))
        return self._notebooks[path][1]

    def _judgement(
        self, submission: Submission, verdicts: list[Verdict], notes: list[str], began: float
    ) -> Judgement:
        notebook = submission.intake.notebook
        cells, released = students_cells(notebook), self.read(self.released(submission.assignment))
        of_runs = [f"{v.question}: {v.suspicion}" for v in verdicts if v.suspicion]
        return Judgement(
            key=submission.key,
            student=submission.student,
            assignment=submission.assignment,
            when=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            seed=self.seed_of(self.read(self.where.source(submission.assignment))),
            sandbox=self.level,
            seconds=round(time.monotonic() - began, 3),
            notes=submission.intake.notes + [f"Your {note}." for note in notes],
            verdicts=verdicts,
            cells=cells,
            devices=str(self.gpus),
            suspicions=suspicions.in_cells(cells) + of_runs,
            in_words=intake.answered_in_words(notebook, released),
        )


def students_cells(notebook: NotebookNode) -> list[tuple[str, str, str]]:
    """(name, cell type, text) of the cells a student wrote, in order."""
    ours = {cell.id for cell in notebook.cells if "nbgrader" in cell.metadata}
    return [
        (cell.id, cell.cell_type, cell.source)
        for cell in notebook.cells
        if is_solution(cell)
        or (cell.cell_type == "code" and cell.id not in ours and not is_grade(cell))
    ]


def submissions(
    where: Places, assignments: list[str], students: list[str]
) -> list[tuple[str, str]]:
    """(student, assignment) of all that was handed in, by assignment.

    Raises:
        CourseError: nothing was handed in, or not by a student that was named.
    """
    found = hand_ins(where, assignments)
    unknown = set(students) - {student for student, _ in found}
    if unknown or not found:
        who = f" by {', '.join(sorted(unknown))}" if unknown else ""
        raise CourseError(
            f"nothing was handed in{who} for these assignments: there is none in"
            f" {where.submitted}/STUDENT/ASSIGNMENT, where autograder collect copies submissions"
        )
    return [place for place in found if not students or place[0] in students]
