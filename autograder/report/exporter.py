"""Our pages in nbgrader's own GenerateFeedback: the formgrader's button, and nbgrader feedback."""

from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode

from autograder.grade.journal import Judgement
from autograder.grade.marks import everyone, read_marks
from autograder.pages import task_titles
from autograder.places import CourseError, Places
from autograder.report.board import Board, boards
from autograder.report.feedback import page


class FeedbackExporter(HTMLExporter):
    """Gives nbgrader the page that `autograder feedback` writes, whatever lies in autograded/."""

    parent: Any  # the converter

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._known: dict[str, tuple[dict[str, Judgement], NotebookNode, list[Board]]] = {}

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        """The page of one student's assignment.

        Raises:
            CourseError: nothing of it was handed in, or what `everyone` raises.
        """
        course, about = self.parent.coursedir, resources["nbgrader"]
        where = Places(Path(course.root), Path(course.submitted_directory).parent)
        student, assignment = about["student"], about["assignment"]
        judgements, source, seen = self._of_class(where, assignment)
        if student not in judgements:
            raise CourseError(f"{student}, {assignment} was not graded yet: run autograder grade")
        marks = read_marks(where, [judgements[student]])[assignment, student]
        resources["output_extension"] = self.file_extension
        return page(judgements[student], source, marks, seen), resources

    def _of_class(
        self, where: Places, assignment: str
    ) -> tuple[dict[str, Judgement], NotebookNode, list[Board]]:
        """Judgements by student, the source and the boards: read once in a run of nbgrader's."""
        if assignment not in self._known:
            found = everyone(where, [assignment])
            source = nbformat.read(where.source(assignment), as_version=4)
            seen = boards(found, task_titles(source), named=True)
            self._known[assignment] = {one.student: one for one in found}, source, seen
        return self._known[assignment]
