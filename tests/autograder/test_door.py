"""The door: whatever lies in a student's place gets a mark or a reason, and is on every list."""

import csv
import io
import os
import re
import zipfile
from pathlib import Path

import nbformat
import pytest
import tiny_course
from click.testing import CliRunner
from graded_class import DOUBLE
from hypothesis import given
from hypothesis import strategies as st
from test_report import text_of

from autograder import cli, commands
from autograder.collect.door import FOREIGN, UNREADABLE, hand_ins, opened, strays
from autograder.collect.names import MAX_BYTES, is_name, student_name
from autograder.grade.journal import Journal, Judgement
from autograder.places import COURSE, Places
from autograder.release import generate as release

NAME, OTHER = tiny_course.ASSIGNMENT, "02_other"
LONG = "x" * 300
NO_TEXT = os.fsdecode(b"b\xffd")


def make_course(folder: Path) -> Places:
    """A course of two assignments."""
    where = tiny_course.make_course(folder)
    source = tiny_course.source()
    for cell in source.cells:
        if cell.id not in ("imports", "task-1", "task-2"):
            cell.id = f"{cell.id}-again"
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.grade_id = cell.id
    path = where.solutions / OTHER / "other.ipynb"
    path.parent.mkdir()
    nbformat.write(source, path)
    release.release(where, [OTHER])
    return where


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def where(course, tmp_path):
    return Places(course.course, tmp_path / "class")


def run(where: Places, *arguments: str):
    """What a command of `autograder` prints, and its exit status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "places", lambda *_: where)
        return CliRunner().invoke(cli.main, list(arguments), catch_exceptions=False)


def right(where: Places) -> bytes:
    return tiny_course.as_bytes(tiny_course.solved(tiny_course.released(where)))


def hand_in_all(where: Places, inbox: Path) -> None:
    """A download of Canvas, and what people put into submitted/ by hand."""
    blank = where.released(NAME).read_bytes()
    with zipfile.ZipFile(inbox, "w") as archive:
        archive.writestr("ada_LATE_1_2_tiny.ipynb", right(where))
        archive.writestr("ben_3_4_tiny.ipynb", blank)
        archive.writestr("cem_5_6_tiny.ipynb", where.released(OTHER).read_bytes())
        archive.writestr("dee_7_8_tiny.ipynb", right(where)[:-20])
        archive.writestr(f"{LONG}/tiny.ipynb", right(where))
        archive.writestr("ev\nil/tiny.ipynb", right(where))


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory):
    """A class that holds one of each, after each command: what they printed."""
    where = Places(course.course, tmp_path_factory.mktemp("graded") / "class")
    inbox = where.class_dir.parent / "inbox.zip"
    hand_in_all(where, inbox)
    said = {"collect": run(where, "collect", NAME, str(inbox))}
    tiny_course.hand_in(where, NO_TEXT, right(where))
    (where.submitted / "lin" / NAME).parent.mkdir()
    (where.submitted / "lin" / NAME).symlink_to(where.submitted / "ada-1" / NAME)
    (where.submitted / "eve").symlink_to(where.solutions)
    (where.submitted / "typ" / "01_tyni").mkdir(parents=True)
    said["grade"] = run(where, "grade", NAME, "--jobs", "1", "--unsandboxed")
    for command in ("feedback", "report", "export"):
        said[command] = run(where, command)
    return where, said


STUDENTS = {"ada-1", "ben-3", "cem-5", "dee-7", "lin", *map(student_name, (LONG, r"ev\nil"))}


@given(st.text(st.characters(), min_size=1))
def test_any_name_becomes_one_that_every_file_and_page_holds(raw):
    name = student_name(raw)
    assert is_name(name)
    assert len(name.encode()) <= MAX_BYTES
    assert student_name(name) == name


def test_no_name_stops_collect(graded):
    said = graded[1]["collect"]
    assert said.exit_code == 0
    assert "collected 6 submissions" in said.output
    assert "\n  cem-5: This is the notebook of 02_other, not of 01_tiny: it is not" in said.output


def test_grades_last_table_names_what_lies_in_the_way_of_a_mark(graded):
    output = graded[1]["grade"].output
    assert "6 passed, 4 unreadable, 2 blank, 2 another assignment's" in output
    assert "1 another assignment's, 01_tiny: cem-5. This is the notebook of 02_other" in output
    assert "1 blank, 01_tiny: ben-3." in output
    assert "unreadable, 01_tiny: lin. A link or a file lies where the folder" in output


def test_a_folder_that_nobody_grades_is_told_and_the_exit_status_is_not_0(graded):
    said = graded[1]["grade"]
    assert "submitted/typ/01_tyni: no assignment is called so" in said.output
    assert r"submitted/b\udcffd is no name for a student: call it b-d-ea7241" in said.output
    assert "submitted/eve is a link and is not followed: put the folder there" in said.output
    assert said.exit_code == 1


def test_every_student_handed_in_is_on_every_list(graded):
    where, said = graded
    assert {page.parts[-3] for page in where.feedback.rglob("*.html")} == STUDENTS
    rows = csv.DictReader(io.StringIO(said["export"].output))
    assert {row["student"] for row in rows} == STUDENTS
    page = text_of((where.class_dir / "grades.html").read_text())
    assert STUDENTS <= set(page.split())


def test_the_class_page_says_what_lies_in_the_way_and_calls_none_of_it_a_wrong_answer(graded):
    page = text_of((graded[0].class_dir / "grades.html").read_text())
    assert "1 blank, 1 another assignment's, 2 unreadable" in page
    assert "another assignment's cem-5 : This is the notebook of 02_other" in page
    assert "The same wrong answer" not in page


def test_the_students_page_says_what_happened_which_cell_and_what_to_do(graded):
    where, _ = graded
    pages = {path.parts[-3]: text_of(path.read_text()) for path in where.feedback.rglob("*.html")}
    assert "double: nothing was written here." in pages["ben-3"]
    assert "Write your answer in its cell and hand in again." in pages["ben-3"]
    assert "Hand in tiny.ipynb of 01_tiny." in pages["cem-5"]
    assert "Save your notebook in Jupyter and hand in tiny.ipynb." in pages["dee-7"]
    assert "Your cell" in pages["ben-3"]
    assert "Your cell" not in pages["cem-5"] + pages["dee-7"], "what was given out is not theirs"


def test_a_students_page_tells_no_seconds_and_no_seed(graded):
    where, _ = graded
    (judgement,) = [one for one in Journal(where.journal).latest() if one.student == "ada-1"]
    page = text_of(next((where.feedback / "ada-1").rglob("*.html")).read_text())
    assert str(judgement.seed) not in page
    assert not re.search(r"[Ss]econds|\d\.\d s\b", page)


# Without a mark


def test_what_was_not_graded_yet_is_on_every_list(where):
    tiny_course.hand_in(where, "ada", right(where))
    assert "1 page" in run(where, "feedback").output
    page = text_of(next((where.feedback / "ada").rglob("*.html")).read_text())
    assert "No mark yet of 6 points" in page
    run(where, "report")
    page = text_of((where.class_dir / "grades.html").read_text())
    assert "no mark ada : it was handed in, and not graded yet" in page
    [row] = csv.DictReader(io.StringIO(run(where, "export").output))
    assert (row["student"], row["score"]) == ("ada", "")
    assert "not graded yet" in row["no_mark"]


def judgement(student: str, *verdicts) -> Judgement:
    return Judgement("", student, NAME, "2026-01-01", 1, "none", 0.1, [], list(verdicts))


def test_a_name_in_an_old_journal_that_no_page_holds_stops_nothing(where):
    line = judgement("nobody", DOUBLE).as_line().decode().replace("nobody", "b\\udcffd")
    where.class_dir.mkdir(parents=True)
    where.journal.write_text(line)
    for command in ("feedback", "report", "export"):
        assert run(where, command).exit_code == 0
    assert (where.feedback / "b-d-ea7241").is_dir()


# What is a hand-in


def standing(where: Places, *files: tuple[str, bytes]) -> str:
    for name, data in files:
        tiny_course.hand_in(where, "ada", data, name)
    return opened(where, "ada", NAME)[1]


def test_the_notebook_named_after_the_assignment_counts_whatever_lies_beside(where):
    other = where.released(OTHER).read_bytes()
    assert standing(where, ("tiny (1).ipynb", right(where)), ("z.ipynb", other)) == ""
    (where.submitted / "ada" / NAME / "tiny (1).ipynb").unlink()
    assert standing(where) == FOREIGN


def test_a_lecture_is_told_from_the_exercises_and_an_exercise_with_cells_of_one_is_judged(where):
    lecture = nbformat.read(COURSE / "lectures" / "01_ranks.ipynb", as_version=4)
    theirs = Places(COURSE, where.class_dir)
    path = theirs.submitted / "ada" / "01_ranks" / "ranks.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(lecture, path)
    assert opened(theirs, "ada", "01_ranks")[1:] == (
        FOREIGN,
        "This is the notebook of the lecture 01_ranks, not of 01_ranks: it is not graded."
        " Hand in ranks.ipynb of 01_ranks.",
    )
    lecture.cells += nbformat.read(theirs.released("01_ranks"), as_version=4).cells
    path.write_bytes(tiny_course.as_bytes(lecture))
    assert opened(theirs, "ada", "01_ranks")[1] == ""


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b'{"cells": []}', b"\xff\xfe\x00"])
def test_what_holds_no_cells_is_unreadable_and_says_what_to_do(where, data):
    assert standing(where, ("tiny.ipynb", data)) == UNREADABLE
    assert opened(where, "ada", NAME)[2].endswith("Jupyter and hand in tiny.ipynb.")


def test_a_link_in_a_students_place_is_never_followed(where):
    tiny_course.hand_in(where, "ben", right(where))
    (where.submitted / "ada").mkdir()
    (where.submitted / "ada" / NAME).symlink_to(where.submitted / "ben" / NAME)
    assert ("ada", NAME) in hand_ins(where, [NAME])
    assert opened(where, "ada", NAME)[1] == UNREADABLE


def test_a_link_in_the_place_of_a_student_is_nobodys_hand_in(where):
    tiny_course.hand_in(where, "ben", right(where))
    (where.submitted / "ada").symlink_to(where.submitted / "ben")
    (where.submitted / "eve").symlink_to(where.solutions)
    assert hand_ins(where, [NAME, OTHER]) == [("ben", NAME)]
    assert [sentence.partition(" and ")[0] for sentence in strays(where)] == [
        "submitted/ada is a link",
        "submitted/eve is a link",
    ]
    assert opened(where, "ada", NAME)[1] == UNREADABLE


def test_collect_writes_through_no_link(where, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    where.submitted.mkdir(parents=True)
    (where.submitted / "ada").symlink_to(tmp_path / "elsewhere")
    (where.submitted / "ben").write_text("a file")
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for student in ("ada", "ben", "cem"):
            archive.writestr(f"{student}/tiny.ipynb", right(where))
    output = run(where, "collect", NAME, str(tmp_path / "in.zip")).output
    assert "collected 1 submission" in output
    assert "left out ada: " in output
    assert "left out ben: " in output
    assert list((tmp_path / "elsewhere").iterdir()) == []
