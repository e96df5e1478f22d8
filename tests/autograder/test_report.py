"""The class page: what it counts, whom it puts together, and that it stands alone."""

import html
import re
from dataclasses import replace
from pathlib import Path

import graded_class
import pytest
import tiny_course
from graded_class import DOUBLE, TOTAL, failed, judge
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from test_marks import hand_in_at, mark_words, policy

from autograder import serve
from autograder.grade.journal import Journal, Judgement
from autograder.grade.verdicts import UNREADABLE, no_answer
from autograder.pages import task_titles
from autograder.places import CourseError, Places
from autograder.report.class_page import groups, masked, write_report
from autograder.report.feedback import write_feedback

NAME = tiny_course.ASSIGNMENT
SCRIPT = "<script>alert(1)</script>"
CELLS = [("double", "code", "def double(n): return 2 * n"), ("total", "code", f"# {SCRIPT}")]


def judgement(student: str, *verdicts) -> Judgement:
    when = "2026-03-01T12:00:00+00:00"
    return Judgement(student, student, NAME, when, 1, "none", 1.5, [], list(verdicts), CELLS)


def lost(message: str, **more):
    return failed(TOTAL, message, **more)


CLASS = [
    judgement("ada", DOUBLE, TOTAL),
    judgement("ben", DOUBLE, lost("rank 0: got [1.0, 2], expected [4.5, 5]\n\nTraceback 1")),
    judgement("cem", DOUBLE, lost("rank 1: got [-3.0, 2e-3, 7], expected [4, 5, 6]\n\nother")),
    judgement("dee", DOUBLE, lost("rank 1: got [-3.0], expected [4]", part="three ranks")),
    judgement("eli", failed(DOUBLE, "slow", "timeout"), lost(f"{SCRIPT} waits", kind="deadlock")),
]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return tiny_course.make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def where(course, tmp_path):
    place = Places(course.course, tmp_path / "class")
    for one in CLASS:
        Journal(place.journal).append(one)
    return place


@pytest.fixture
def page(where) -> str:
    write_feedback(where, [NAME], ["ada"])
    return write_report(where, where.class_dir / "grades.html").read_text()


def text_of(page: str) -> str:
    """What a reader sees, without tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_same_mistake_with_other_numbers_is_one_group():
    found = [(example.question, students) for students, example in groups(CLASS)]
    assert found == [
        ("test-total", ["ben", "cem"]),
        ("test-double", ["eli"]),
        ("test-total", ["dee"]),
        ("test-total", ["eli"]),
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("got 4.0, expected 6", "got -1e-3, expected 12", True),
        ("ranks [0, 1, 2] sent", "ranks [3] sent", True),
        ("at 0x7f3a\n line 3", "at 0x11 line 14", True),
        ("got x2", "got x3", False),
        ("float32 is", "float64 is", False),
        ("a b", "a c", False),
    ],
)
def test_numbers_do_not_tell_mistakes_apart_but_names_and_words_do(one, other, same):
    assert (masked(one) == masked(other)) == same


def test_the_page_says_which_wrong_answer_recurs_and_shows_its_code(page):
    assert "2 × Task 2 · Total failed in “two ranks”" in text_of(page)
    assert "rank 0: got [1.0, 2], expected [4.5, 5]" in text_of(page)
    assert "Traceback 1" not in page
    assert "Given once: 3 other wrong answers." in text_of(page)


def test_the_page_counts_tasks_and_parts(page):
    assert "Task 2 · Total 1 of 5 two ranks: 3 three ranks: 1" in text_of(page).replace(" :", ":")
    assert "Task 1 · Double 4 of 5 two ranks: 1" in text_of(page)


def test_an_exercise_of_words_alone_has_a_page_without_tasks(tmp_path):
    where = graded_class.of_words(tmp_path)
    judge(where, "ada")
    page = text_of(write_report(where, where.class_dir / "grades.html").read_text())
    assert "ada 0 + ?" in page
    assert "How each task ended" not in page


def test_tests_below_one_heading_are_told_apart():
    source = tiny_course.source()
    graded = {"grade": True, "solution": False}
    names = "test-there", "test-back"
    below = [new_code_cell(id=name, metadata={"nbgrader": graded}) for name in names]
    source.cells[6:] = [
        new_markdown_cell("## Task 2 · There (1 point), back (2 points: 1 each)"),
        *below,
    ]
    assert task_titles(source) == {
        "test-double": "Task 1 · Double",
        "test-there": "Task 2 · There, back: there",
        "test-back": "Task 2 · There, back: back",
    }


def test_the_page_links_to_feedback_that_exists(page):
    assert page.count('href="feedback/ada/01_tiny/tiny.html"') == 1
    assert 'href="feedback/ben' not in page


def test_the_page_stands_alone_and_runs_nothing(page):
    assert "<script" not in page
    assert html.escape(SCRIPT) in page
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert "<img" not in page


def test_each_picture_says_in_words_what_it_shows(page):
    assert 'aria-label="Submissions by points. 5: 1, 2: 3, 0: 1."' in page
    assert "half have 2 or more of 6" in text_of(page)
    assert "hardest: Task 2 · Total, passed by 1 of 5" in text_of(page)
    assert "Task 2 · Total: 1 passed, 3 failed, 1 deadlock 1 3 1" in text_of(page)


def test_the_overview_counts_what_the_table_and_the_export_count(tmp_path):
    """Marks by hand, answers in words and lateness, not the points of tests alone."""
    where = graded_class.make(tmp_path)
    for student in ("ada", "ben", "cem"):
        mark_words(where, student, 1)
    mark_words(where, "cem", 3, "test-total")
    hand_in_at(where, "ben", "2026-03-02T12:00:00")
    policy(where, f"[late]\npercent_per_day = 10\n[due]\n{NAME} = 2026-03-01\n")
    page = write_report(where, where.class_dir / "grades.html").read_text()
    table = text_of(page).partition("Every verdict")[2]
    assert all(row in table for row in ("ada 6 ", "ben 5.4 ", "cem 6 ", "dee 2 + ? "))
    assert "Tiny 4 5.7 / 6 2 0" in text_of(page), "handed in, median, all points, no mark"
    assert 'aria-label="Submissions by points. 6: 2, 5: 1, 2: 1."' in page
    assert "median 5.7 of 6 points" in text_of(page)


def test_a_page_calls_an_answer_in_words_marked_only_where_a_person_marked_it(tmp_path):
    where = graded_class.make(tmp_path)
    right = tiny_course.solved(tiny_course.released(where))
    blank = tiny_course.answered(right, why="YOUR ANSWER HERE")
    below = new_notebook(cells=[*blank.cells, new_markdown_cell("Because of the sum.")])
    nothing = [no_answer(one.question, one.max_points, UNREADABLE, "") for one in (DOUBLE, TOTAL)]
    for student, sent in {"eva": blank, "fay": below, "gus": b""}.items():
        tiny_course.hand_in(where, student, sent)
        judge(where, student, *(nothing if student == "gus" else (DOUBLE, TOTAL)))
    mark_words(where, "ada", 1)
    pages = {page.parts[-3]: page.read_text() for page in write_feedback(where, [NAME], [])}
    of = {name: text_of(page.partition(' id="why">')[2]) for name, page in pages.items()}
    assert of["ada"].startswith(f"Task 2 · Total: why marked {tiny_course.WORDS}")
    assert of["eva"].startswith("Task 2 · Total: why blank YOUR ANSWER HERE")
    assert of["fay"].startswith("Task 2 · Total: why waits for a mark Because of the sum.")
    assert of["gus"].startswith("Task 2 · Total: why unreadable")
    assert not any("No response" in page for page in pages.values())


def test_notes_to_the_instructor_are_on_the_page_and_cost_no_point(where):
    before = text_of(write_report(where, where.class_dir / "before.html").read_text())
    noted = replace(CLASS[0], suspicions=[f"test-total: {SCRIPT} sent more"])
    Journal(where.journal).append(noted)
    page = write_report(where, where.class_dir / "grades.html").read_text()
    assert f"ada: test-total: {SCRIPT} sent more" in text_of(page)
    assert "<script" not in page
    assert "Notes to the instructor" not in before
    assert text_of(page).partition("Every verdict")[2] == before.partition("Every verdict")[2]


ROWS = {
    "ada": ("Noether", "dp 2", 0.5, 900),
    "ben": (SCRIPT[:24], "dp 1", 0.4, 1000),
    "cem": ("Noether", "dp 2", 0.5, 800),
    "dee": ("", "dp 2", 0.5, 900),
}


@pytest.fixture
def with_board(where):
    """Ada, Ben and Cem have a pseudonym on the board, Dee has none; Eli's did not pass."""
    for own in CLASS[:4]:
        name, layout, took, held = ROWS[own.student]
        row = [["layout", layout], ["seconds", took], ["most bytes", held]]
        on_it = replace(DOUBLE, board={"name": name, "row": row})
        Journal(where.journal).append(replace(own, verdicts=[on_it, own.verdicts[1]]))
    late = replace(CLASS[4].verdicts[0], board={"name": "Cheat", "row": [["seconds", 0.0]]})
    Journal(where.journal).append(replace(CLASS[4], verdicts=[late, CLASS[4].verdicts[1]]))
    return where


FOR_THE_CLASS = (
    "Place Pseudonym layout seconds most bytes"
    f" 1 {SCRIPT[:24]} dp 1 0.400 1,000"
    " 2 Noether dp 2 0.500 800"
    " 3 Noether dp 2 0.500 900"
)
FOR_THE_INSTRUCTOR = (
    "Place Student Pseudonym layout seconds most bytes"
    f" 1 ben {SCRIPT[:24]} dp 1 0.400 1,000"
    " 2 cem Noether dp 2 0.500 800"
    " 3 dee dp 2 0.500 900"
    " 3 ada Noether dp 2 0.500 900"
)


def test_the_instructors_board_has_all_who_passed(with_board):
    html = write_report(with_board, with_board.class_dir / "grades.html").read_text()
    board = text_of(html).partition("Class board: Task 1 · Double")[2]
    assert FOR_THE_INSTRUCTOR in board
    assert "Cheat" not in html
    assert "<script" not in html


def test_every_student_sees_the_board_with_pseudonyms_alone(with_board):
    pages = write_feedback(with_board, [NAME], ["eli"])
    html = pages[0].read_text()
    assert "Your class's board: Task 1 · Double" in text_of(html)
    assert FOR_THE_CLASS in text_of(html)
    assert not any(own.student in text_of(html).split() for own in CLASS[:4])
    assert "<script" not in html


def test_a_board_costs_no_point(where):
    before = text_of(write_report(where, where.class_dir / "before.html").read_text())
    row = {"name": "", "row": [["seconds", 0.5]]}
    own = next(one for one in CLASS if one.student == "ada")
    Journal(where.journal).append(
        replace(own, verdicts=[replace(DOUBLE, board=row), own.verdicts[1]])
    )
    after = text_of(write_report(where, where.class_dir / "grades.html").read_text())
    assert "Class board" in after
    assert after.partition("Every verdict")[2] == before.partition("Every verdict")[2]


def test_a_class_that_nobody_of_asked_for_a_board_has_none(where, page):
    assert "Class board" not in page
    assert "class's board" not in text_of(write_feedback(where, [NAME], ["ada"])[0].read_text())


def test_an_ungraded_class_is_answered_with_a_sentence(course, tmp_path):
    with pytest.raises(CourseError, match="nothing was graded yet"):
        write_report(Places(course.course, tmp_path), tmp_path / "grades.html")


def test_serve_starts_jupyterlab_with_this_configuration_and_class(where, monkeypatch):
    """No server is started: only what would run, and with which variables."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/elsewhere")
    command = serve.command(where, ["--IdentityProvider.token=x"])
    assert command[1:3] == ["-m", "jupyterlab"]
    assert command[-1] == "--IdentityProvider.token=x"
    assert f"--ServerApp.root_dir={where.course}" in command
    assert "--LabApp.default_url=/lab/tree/work/lectures" in command
    variables = serve.environment(where, teaches=True)
    assert (variables["COURSE"], variables["CLASS"]) == (str(where.course), str(where.class_dir))
    config, page, other = variables["JUPYTER_CONFIG_PATH"].split(":")
    assert (Path(config) / "nbgrader_config.py").exists()
    assert (Path(page) / "labconfig" / "page_config.json").exists()
    assert other == "/elsewhere"
