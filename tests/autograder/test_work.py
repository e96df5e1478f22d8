"""A student's copy: made once, brought up to date, never written over; and where a course is."""

import shutil
import subprocess

import pytest
import tiny_course
from test_run import notebook

from autograder.places import COURSE, CourseError, course_directory, places
from autograder.serve import lay_out

EXERCISE = "exercises/01_tiny/tiny.ipynb"


@pytest.fixture
def where(tmp_path):
    """A course of one exercise and one lecture, laid out to work in."""
    where = tiny_course.make_course(tmp_path)
    (where.course / "lectures").mkdir()
    notebook(where.course / "lectures" / "01_tiny.ipynb", "print('a lecture')")
    assert lay_out(where) == []
    return where


def test_the_copy_holds_lectures_and_exercises(where):
    for name in ("lectures/01_tiny.ipynb", EXERCISE):
        assert (where.work / name).read_bytes() == (where.course / name).read_bytes()


def test_work_is_kept_and_a_newer_version_is_named(where):
    mine = where.work / EXERCISE
    mine.write_bytes(tiny_course.as_bytes(tiny_course.solved(tiny_course.released(where))))
    solved = mine.read_bytes()
    assert lay_out(where) == [], "the course has nothing newer"
    notebook(where.course / EXERCISE, "print('newer')")
    (sentence,) = lay_out(where)
    assert sentence.startswith(f"{mine} is yours and stays as it is. The course has a newer")
    assert mine.read_bytes() == solved
    mine.rename(mine.with_name("mine.ipynb"))
    assert lay_out(where) == []
    assert mine.read_bytes() == (where.course / EXERCISE).read_bytes()


def test_what_nobody_touched_follows_the_course(where):
    notebook(where.course / "lectures" / "01_tiny.ipynb", "print('newer')")
    assert lay_out(where) == []
    assert "newer" in (where.work / "lectures" / "01_tiny.ipynb").read_text()


def test_nothing_is_written_over_where_the_record_was_lost(where):
    mine = where.work / EXERCISE
    mine.write_text("my work")
    (where.work / ".written.json").write_text("{")
    (sentence,) = lay_out(where)
    assert str(mine) in sentence
    assert mine.read_text() == "my work"


def test_git_ignores_the_copy():
    if not shutil.which("git") or not (COURSE / ".git").exists():
        pytest.skip("this is no git checkout")
    name = f"{places(course=COURSE).work}/lectures/01_ranks.ipynb"
    command = ["git", "-C", str(COURSE), "check-ignore", "--quiet", name]
    assert subprocess.run(command).returncode == 0


def test_a_course_is_named_or_stood_in_and_a_copy_is_none(where, monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE", raising=False)
    monkeypatch.chdir(where.course)
    assert course_directory() == where.course
    monkeypatch.chdir(where.work)
    assert course_directory() == COURSE
    assert course_directory(where.course) == where.course
    monkeypatch.setenv("COURSE", str(tmp_path))
    with pytest.raises(CourseError, match=f"{tmp_path} is no course: .* name it with --course DIR"):
        course_directory()
