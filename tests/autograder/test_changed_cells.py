"""Graded cells that are added or removed after hand-ins came: one message, and a way forward."""

import shutil

import graded_class
import nbformat
import pytest
import tiny_course
from graded_class import DOUBLE, NAME, failed, judge
from test_marks import book, mark_words, marks

from autograder.grade.verdicts import Verdict
from autograder.places import CourseError, Places
from autograder.release import changes
from autograder.release import generate as release

TRIPLE = Verdict("test-triple", "passed", 4, 4)


@pytest.fixture
def where(tmp_path):
    """A class of four, graded and marked, whose second task then becomes another one."""
    place = graded_class.make(tmp_path)
    mark_words(place, "ada", 1)
    with book(place) as gradebook:
        comment = gradebook.find_comment("double", "tiny", NAME, "ada")
        comment.manual_comment = "well done"
        gradebook.db.commit()
    change(place)
    return place


def change(where: Places) -> None:
    path = where.source(NAME)
    notebook = nbformat.read(path, as_version=4)
    header = notebook.cells[0]
    header.source = header.source.replace("Points: 6", "Points: 7")
    for cell in notebook.cells:
        if cell.id in ("total", "test-total"):
            cell.id = cell.metadata.nbgrader.grade_id = cell.id.replace("total", "triple")
            if "points" in cell.metadata.nbgrader:
                cell.metadata.nbgrader.points = 4
    nbformat.write(notebook, path)
    release.release(where, [NAME])


def test_one_message_says_what_changed_and_how_to_go_on(where):
    with pytest.raises(CourseError) as told:
        release.register(where, NAME)
    assert str(told.value).count("\n") == 0
    assert "those that 4 submissions were recorded with" in str(told.value)
    assert "Added: test-triple (4 points), triple. Removed: test-total (3 points), total." in (
        str(told.value)
    )
    assert f"autograder grade {NAME} --changed-cells" in str(told.value)
    assert marks(where, "ada").score == 6


def test_taking_over_keeps_marks_and_comments_of_people_and_a_copy(where):
    kept = changes.take_over(where, NAME)
    assert kept.exists()
    release.register(where, NAME)
    judge(where, "ada", DOUBLE, TRIPLE)
    assert marks(where, "ada").by_cell == {"test-double": 2, "test-triple": 4, "why": 1}
    assert marks(where, "ada").comments == {"double": "well done"}
    assert changes.take_over(where, NAME) is None


def test_all_are_recorded_again_with_the_new_cells(where):
    changes.take_over(where, NAME)
    for student in ("ada", "cem"):
        judge(where, student, failed(DOUBLE, "no"), TRIPLE)
        assert marks(where, student).max_score == 7


def test_the_copy_is_the_gradebook_as_it_was(where, tmp_path):
    kept = changes.take_over(where, NAME)
    old = Places(where.course, tmp_path / "old")
    old.class_dir.mkdir()
    shutil.copy(kept, old.gradebook)
    shutil.copy(where.journal, old.journal)
    assert marks(old, "ada").by_cell["test-total"] == 3


def test_without_hand_ins_any_change_is_taken(tmp_path):
    place = tiny_course.make_course(tmp_path)
    release.register(place, NAME)
    change(place)
    release.register(place, NAME)
    assert changes.take_over(place, NAME) is None
