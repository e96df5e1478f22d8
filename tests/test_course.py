"""`make course`: lectures run, exercises proven, a class graded, and a table at the end."""

import nbformat
import pytest
import tiny_course
from test_run import notebook

from autograder import course
from byhand.runtime.isolation import why_no_sandbox

SANDBOXED = why_no_sandbox() is None


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """A course of one exercise and one lecture, whose sample class is Ada, Bob and Eve."""
    where = tiny_course.make_course(tmp_path_factory.mktemp("course"))
    samples = where.course / "tests" / "submissions"
    blank = tiny_course.released(where)
    wrong = tiny_course.answered(tiny_course.released(where), double="def double(n): return n")
    books = {"ada": tiny_course.solved(tiny_course.released(where)), "bob": blank, "eve": wrong}
    for student, book in books.items():
        path = samples / student / tiny_course.ASSIGNMENT / f"{tiny_course.STEM}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(book, path)
    (where.course / "lectures").mkdir()
    notebook(where.course / "lectures" / "01_tiny.ipynb", "print('a lecture')")
    return where


def test_lectures_are_run_and_their_pages_lie_in_build(where):
    row = course.run_lectures(where.course / "lectures", where.course / "build")
    assert (row.what, row.problems) == ("lectures run: 1 of 1", [])
    (page,) = (where.course / "build").rglob("01_tiny.html")
    assert "a lecture" in page.read_text()


def test_a_right_exercise_is_proven(where):
    row = course.prove(where.course, where.course / "build", SANDBOXED)
    assert (row.what, row.problems) == ("exercises proven: 1; solutions score 5 of 5, blanks 0", [])


def test_a_sample_class_is_graded_and_every_student_has_a_page(where):
    build = where.course / "build"
    grades, feedback = course.grade_sample(where.course, build, SANDBOXED)
    assert grades.problems == []
    assert grades.what.startswith("students graded: 3; 3 submissions")
    assert "ada" in (build / "grades.html").read_text()
    assert feedback.what == "feedback pages: 3"
    assert len(list((build / "sample-class" / "feedback").rglob("*.html"))) == 3


def test_a_student_who_is_no_sample_any_more_is_forgotten(where, tmp_path):
    samples, fresh = tmp_path / "samples", course.Places(where.course, tmp_path / "class")
    (samples / "ada").mkdir(parents=True)
    fresh.journal.parent.mkdir(parents=True)
    judged = judgement("old", points=1)
    course.Journal(fresh.journal).append(judged)
    course.hand_in_samples(samples, fresh)
    assert not fresh.journal.exists()
    assert [path.name for path in fresh.submitted.iterdir()] == ["ada"]


def judgement(student: str, points: int, verdict: str = "failed") -> course.Judgement:
    from autograder.verdicts import Verdict

    verdicts = [Verdict("test-ring", verdict, points, 2, message="got 1\nexpected 2")]
    return course.Judgement("key", student, "01_tiny", "now", 0, "none", 1.0, [], verdicts)


def test_a_solution_that_loses_a_point_is_no_proof():
    sentence = course._unproven(judgement(course.SOLVED, points=0))
    expected = "the solution of 01_tiny scores 0, not 2: test-ring failed got 1"
    assert sentence == expected


def test_a_blank_that_wins_a_point_is_no_proof():
    sentence = course._unproven(judgement(course.BLANK, points=2, verdict="passed"))
    assert sentence.startswith("the blank of 01_tiny scores 2, not 0: test-ring passed")
    assert course._unproven(judgement(course.BLANK, points=0)) == ""


def test_the_table_ends_with_what_failed():
    rows = [course.Row("lectures", 1.5, "build"), course.Row("pages", 0.0, "here", ["no page"])]
    assert course.table(rows).splitlines() == [
        "lectures     1.5 s  build",
        "pages               here",
        "failed: no page",
    ]
