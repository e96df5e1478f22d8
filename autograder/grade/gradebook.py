"""Our engine inside nbgrader's own Autograde: scores reach its gradebook by its own code.

nbgrader makes one of our exporters at the start of every run, from its command line, from the
formgrader's button and from `record`. That exporter hands it rebuilt notebooks instead of the
files that students sent, and `WriteVerdicts` enters the journal's verdicts into them, where
nbgrader's SaveAutoGrades, as `SaveScores`, finds the scores.
"""

import atexit
import contextlib
import os
import re
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from nbgrader.utils import compute_checksum, parse_utc

from autograder.cells import is_grade, is_solution
from autograder.collect.uploads import read_file
from autograder.grade.engine import Grader
from autograder.grade.verdicts import PASSED, Verdict
from autograder.nbgrader_config import settings
from autograder.pages import task_cells
from autograder.places import Places
from autograder.release.generate import quiet_nbgrader, refusal
from byhand.words import counted

UNSANDBOXED_VARIABLE = "AUTOGRADER_UNSANDBOXED"


def record(grader: Grader, student: str, assignment: str) -> None:
    """Write one judged submission to nbgrader's gradebook and autograded/. Safe to repeat.

    Raises:
        CourseError: nbgrader refused; the message holds its last words.
        GradebookError: it is locked, or there is no room on the disk.
    """
    config = settings(grader.where)
    config.CourseDirectory.student_id = student
    config.CourseDirectory.assignment_id = assignment
    with quiet_nbgrader() as said:
        converter = _OneSubmission(coursedir=SafeDirectory(config=config), config=config)
        converter.force, converter.grader = True, grader
        try:
            converter.start()
        except NbGraderException as error:
            sentence = f"nbgrader could not record {student}, {assignment}: {error}"
            raise refusal(sentence, said) from None


class SafeDirectory(CourseDirectory):
    """nbgrader's course directory, that copies nothing of a submission and follows no link."""

    def _ignore_default(self) -> list[str]:
        return ["*", ".*"]

    def get_existing_timestamp(self, dest_path: str) -> Any:
        """When a submission was handed in, if its timestamp.txt is a small file that says so."""
        data, _ = read_file(Path(dest_path) / "timestamp.txt", limit=100)
        try:
            return parse_utc(data.decode().strip()) if data and data.strip() else None
        except (ValueError, OverflowError):
            return None


class RestoringExporter(NotebookExporter):
    """Gives nbgrader the rebuilt notebook of a submission, whatever the student's file is.

    `graded_before`: by student and assignment the work in the autograded notebook that there was.
    """

    parent: Any  # the converter

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        if isinstance(self.parent, Autograde):
            self._take_over(self.parent)

    def _take_over(self, converter: Autograde) -> None:
        """Let the converter see one notebook for each folder, and nothing else in it."""
        old = converter.coursedir
        self.grader = getattr(converter, "grader", None) or _grader_of(old)
        converter.coursedir = SafeDirectory(
            config=converter.config,
            student_id=old.student_id,
            assignment_id=old.assignment_id,
            notebook_id=old.notebook_id,
            ignore=["*", ".*"],
        )
        self.graded_before: dict[tuple[str, str], dict[str, list[str]]] = {}
        for folder in converter.assignments:
            student, assignment = Path(folder).parts[-2:]
            name = f"{self.grader.where.source(assignment).stem}.ipynb"
            converter.assignments[folder] = [os.path.join(folder, name)]
            path = self.grader.where.autograded / student / assignment / name
            with contextlib.suppress(OSError, ValueError):
                was = _graded_work(nbformat.read(path, as_version=4))
                self.graded_before[student, assignment] = was

    def from_filename(
        self, filename: str, resources: Any = None, **kwargs: Any
    ) -> tuple[NotebookNode, Any]:
        """The rebuilt notebook when nbgrader reads from submitted/; else the file itself."""
        if not self.parent._sanitizing:
            return super().from_filename(filename, resources=resources, **kwargs)
        about = resources["nbgrader"]
        self.submission = self.grader.take_in(about["student"], about["assignment"])
        notebook = self.submission.intake.notebook
        return self.from_notebook_node(notebook, resources=resources, **kwargs)


class WriteVerdicts(NbGraderPreprocessor):
    """Enters the verdicts on a rebuilt submission into its test cells."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge, or take the judgement from the journal. Raises where it cannot be judged."""
        exporter = self.parent
        judgement = exporter.grader.judgement_on(exporter.submission)
        by_name = {verdict.question: verdict for verdict in judgement.verdicts}
        for cell in nb.cells:
            if cell.cell_type == "markdown" and is_solution(cell):
                if cell.metadata.nbgrader.get("checksum") != compute_checksum(cell):
                    cell.source = _as_text(cell.source)
            elif cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
                cell.outputs = [_output(by_name[cell.metadata.nbgrader.grade_id])]
        nb.metadata["autograder"] = judgement.stamp
        return nb, resources


class SaveScores(SaveAutoGrades):
    """nbgrader's, which lets every mark that a person gave wait for a person again.

    Here a mark waits only where the work below it changed.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Enter the scores."""
        about = resources["nbgrader"]
        before = self.parent.graded_before.get((about["student"], about["assignment"]), {})
        self.unchanged = {
            name for name, work in _graded_work(nb).items() if before.get(name) == work
        }
        return super().preprocess(nb, resources)

    def _add_score(self, cell: NotebookNode, resources: Any) -> None:
        name = cell.metadata.nbgrader.grade_id
        grade = self.gradebook.find_grade(
            name, self.notebook_id, self.assignment_id, self.student_id
        )
        is_settled = grade.manual_score is not None and not grade.needs_manual_grade
        super()._add_score(cell, resources)
        if is_settled and name in self.unchanged:
            grade.needs_manual_grade = False
            self.gradebook.db.commit()


def _graded_work(notebook: NotebookNode) -> dict[str, list[str]]:
    """By graded cell, the texts that its points are for.

    An answer in words is its own; a test's are its task's answers and what else a student runs.
    """
    text = {cell.id: cell.source for cell in notebook.cells}
    own = [
        c.source for c in notebook.cells if c.cell_type == "code" and "nbgrader" not in c.metadata
    ]
    words = {cell.id: [cell.source] for cell in notebook.cells if is_grade(cell)}
    tests = task_cells(notebook).items()
    return words | {test: [*(text[name] for name in names), *own] for test, names in tests}


class _OneSubmission(Autograde):
    """Autograde for one folder, found by its name alone: it may hold anything."""

    grader: Grader | None = None

    def init_notebooks(self) -> None:
        course = self.coursedir
        folder = self._format_source(course.assignment_id, course.student_id)
        self.assignments, self.notebooks = {folder: []}, []


_graders: dict[tuple[str, bool], Grader] = {}


def _grader_of(course: CourseDirectory) -> Grader:
    """A grader for nbgrader's own commands, which know only its configuration.

    nbgrader tells nobody when it is done, so a grader stays warm until this process ends: a click
    in the formgrader need not start the kernel again.
    """
    where = Places(Path(course.root), Path(course.submitted_directory).parent)
    key = (course.submitted_directory, not os.environ.get(UNSANDBOXED_VARIABLE))
    if key not in _graders:
        _graders[key] = Grader(where, sandboxed=key[1])
        atexit.register(_graders[key].close)
    return _graders[key]


def _as_text(answer: str) -> str:
    """Markdown that shows an answer as it was typed: the formgrader makes live links of others."""
    fence = "`" * (1 + max([2, *map(len, re.findall("`+", answer))]))
    return f"{fence}\n{answer}\n{fence}"


def _output(verdict: Verdict) -> NotebookNode:
    """A verdict as the output of its test cell: an error where it lost its points."""
    part = f"{verdict.part}: " if verdict.part else ""
    text = "\n\n".join(filter(None, [part + verdict.message, verdict.table]))
    if verdict.verdict == PASSED:
        text = f"passed: {counted(verdict.points, 'point')}"
        return new_output("display_data", {"text/plain": text})
    return new_output(
        "error", ename=verdict.verdict, evalue=text[:500], traceback=[f"{verdict.verdict}: {text}"]
    )
