"""Our pages in nbgrader's own GenerateFeedback: the formgrader's button, and nbgrader feedback."""

from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import HTMLExporter

from autograder.grade.journal import Journal
from autograder.grade.marks import read_marks
from autograder.places import CourseError, Places
from autograder.report.feedback import page


class FeedbackExporter(HTMLExporter):
    """Gives nbgrader the page of the journal's judgement, whatever lies in autograded/."""

    parent: Any  # the converter

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        """The page of one student's assignment.

        Raises:
            CourseError: the journal has no judgement on it.
        """
        course, about = self.parent.coursedir, resources["nbgrader"]
        where = Places(Path(course.root), Path(course.submitted_directory).parent)
        student, assignment = about["student"], about["assignment"]
        judgement = Journal(where.journal).last(student, assignment)
        if judgement is None:
            raise CourseError(f"{student}, {assignment} was not graded yet: run autograder grade")
        source = nbformat.read(where.source(assignment), as_version=4)
        marks = read_marks(where, [judgement])[assignment, student]
        resources["output_extension"] = self.file_extension
        return page(judgement, source, marks), resources
