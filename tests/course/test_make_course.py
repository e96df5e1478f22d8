"""`make course`: lectures run, exercises proven, a class graded, and a table at the end."""

import contextlib
import os
import pty
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import tiny_course
from test_jobs import full_disk
from test_run import notebook

from autograder import course, samples
from autograder.batch.notebooks import run_notebooks
from autograder.batch.queue import Report, here
from autograder.batch.running import Running
from autograder.book import build as book
from autograder.grade.journal import Journal, Judgement
from autograder.places import COURSE, Places

SAMPLES = """
from types import SimpleNamespace as Case

import nbformat
import tiny_course
from autograder.release import generate as release

BOOKS = {
    "ada": (tiny_course.solved, 5),
    "bob": (lambda blank: blank, 0),
    "eve": (lambda blank: tiny_course.answered(blank, double="def double(n): return n"), 1),
}
CASES = [Case(student=s, assignment="01_tiny", points=points) for s, (_, points) in BOOKS.items()]


def write_class(submitted):
    where = tiny_course.Places(submitted.parent.parent.parent, submitted.parent)
    blank = nbformat.reads(release.blank(where.source("01_tiny")), 4)
    for student, (work, _) in BOOKS.items():
        tiny_course.hand_in(where, student, work(blank))
"""


@pytest.fixture(autouse=True)
def one_worker(monkeypatch):
    """Each worker imports torch, and here there is little for two."""
    monkeypatch.setattr(course, "at_once", lambda: 1)


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """A course of one exercise and one lecture, whose sample class is Ada, Bob and Eve."""
    where = tiny_course.make_course(tmp_path_factory.mktemp("course"))
    for folder in ("lectures", "tests/submissions"):
        (where.course / folder).mkdir(parents=True)
    (where.course / "tests" / "submissions" / "sample_class.py").write_text(SAMPLES)
    notebook(where.course / "lectures" / "01_tiny.ipynb", "print('a lecture')")
    return where


READ_TO_INSTALL = "Makefile", "pyproject.toml", "constraints.txt"


def told_by_make(folder, python, *more, terminal=False):
    """What make says that cannot install with this Python; `folder` has what installing reads."""
    for name in READ_TO_INSTALL:
        shutil.copyfile(COURSE / name, folder / name)
    command = ["make", "exercises", f"PYTHON={python}", *more]
    if not terminal:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 2
        return done.stdout
    ours, theirs = pty.openpty()
    subprocess.run(command, cwd=folder, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    with os.fdopen(ours, "rb") as screen, contextlib.suppress(OSError):  # where all has been read
        while chunk := screen.read1(1 << 16):  # a terminal hands on what it has so far
            said += chunk
    return said.decode().replace("\r\n", "\n")


def acts(path, lines):
    """A Python that does otherwise in these cases, and else what the one of the tests does."""
    path.write_text(f'#!/bin/sh\ncase "$*" in\n{lines}\nesac\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


OLD = """*%d.%d*) echo 3.10; exit;;
*'(3, 11)'*) exit 1;;"""
NO_INDEX = """'-m venv'*) mkdir -p .venv/bin; cp "$0" .venv/bin/python; exit;;
'-m pip'*) echo Retrying; echo '  ERROR: No matching distribution for torch'; exit 1;;"""


INSTALLS = """'-m venv'*) mkdir -p .venv/bin; cp "$0" .venv/bin/python; exit;;
'-m pip'*) exit;;"""
ON_ITS_PATH = {
    "bench": "benchmarks/one.py",
    "mutants": "answers/mutants.py",
    "soak": "autograder/soak.py",
}


@pytest.mark.parametrize("python", ["no-python", "ls"])
def test_make_says_which_python_it_looked_for(tmp_path, python):
    said = told_by_make(tmp_path, python)
    assert said.startswith(f"No Python is called {python} here. The course needs 3.11 or newer: ")


def test_make_says_that_a_python_is_too_old_and_how_to_choose_another(tmp_path):
    old = acts(tmp_path / "old", OLD)
    assert told_by_make(tmp_path, old).startswith(f"{old} is Python 3.10: the course needs 3.11")


def test_make_says_what_pip_failed_at_and_where_the_rest_stands(tmp_path):
    said = told_by_make(tmp_path, acts(tmp_path / "lone", NO_INDEX)).splitlines()
    assert said[1:3] == [
        "1 of 3: pip itself",
        "pip could not install the course: ERROR: No matching distribution for torch",
    ]
    assert "needs a network" in said[4]
    assert (tmp_path / ".venv" / "pip.log").read_text().startswith("Retrying")


def test_on_a_terminal_pip_speaks_for_itself_and_torch_may_be_small(tmp_path):
    alone = acts(tmp_path / "lone", NO_INDEX)
    said = told_by_make(tmp_path, alone, "TORCH=cpu", terminal=True)
    assert "1 of 3: pip itself\nRetrying\n  ERROR: No matching" in said
    assert "pip could not install the course, see above." in said
    assert "torch+cpu is not everywhere: PIP_EXTRA_INDEX_URL=" in said


def test_make_works_in_a_folder_whose_name_has_a_space(tmp_path):
    folder = tmp_path / "my course"
    for target, name in ON_ITS_PATH.items():
        (folder / "tests" / name).parent.mkdir(parents=True)
        (folder / "tests" / name).write_text(f"import beside; print('{target} runs')")
    (folder / "tests" / "beside.py").touch()
    for name in READ_TO_INSTALL:
        shutil.copyfile(COURSE / name, folder / name)
    acts(folder / "own-python", INSTALLS)
    path = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    command = ["make", *ON_ITS_PATH, "PYTHON=own-python", "-o", "sandbox", "-o", "network"]
    done = subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-3:] == [f"{target} runs" for target in ON_ITS_PATH]
    assert (done.returncode, done.stderr) == (0, "")


def test_make_help_says_what_can_be_chosen_as_readme_promises():
    make = ["make", "--no-print-directory", "help"]
    said = subprocess.run(make, cwd=COURSE, capture_output=True, text=True).stdout
    assert said.startswith("make course ")
    assert "TORCH=cpu asks for torch without CUDA" in said


def test_lectures_are_run_and_their_pages_lie_in_build(where, capsys):
    row = course.run_lectures(where.course / "lectures", where.course / "build")
    assert (row.what, row.problems) == ("lectures run: 1 of 1", [])
    (page,) = (where.course / "build").rglob("01_tiny.html")
    assert "a lecture" in page.read_text()
    assert "01_tiny.html is there to read\n" in capsys.readouterr().out
    again = course.run_lectures(where.course / "lectures", where.course / "build")
    assert again.what == "lectures run: 1 of 1, 1 of them before, and nothing changed since"
    notebook(where.course / "lectures" / "01_tiny.ipynb", "print('a better lecture')")
    changed = course.run_lectures(where.course / "lectures", where.course / "build")
    assert changed.what == "lectures run: 1 of 1"
    assert "a better lecture" in page.read_text()


def test_a_lecture_that_ran_beside_others_runs_again_for_the_book_and_not_the_other_way(where):
    folder, build = where.course / "lectures", where.course / "build"
    notebook(folder / "01_tiny.ipynb", "print('one more lecture')")
    beside = course.Lectures(folder, build)
    assert len(beside.items) == 1
    for report in here(2)(Running(), beside.items):
        beside.take(report)
    assert course.Lectures(folder, build).items == []
    assert course.run_lectures(folder, build).what == "lectures run: 1 of 1"
    assert course.Lectures(folder, build, alone=True).items == []
    assert course.Lectures(folder, build).items == []


def test_of_a_book_that_is_not_whole_only_what_is_wrong_is_said(tmp_path, monkeypatch, capsys):
    """Pages of an earlier one may lie there, and were counted."""
    (tmp_path / "lectures").mkdir()
    notebook(tmp_path / "lectures" / "01_tiny.ipynb", "1 / 0")
    monkeypatch.setattr(book, "COURSE", tmp_path)
    assert book.main() == 1
    said = capsys.readouterr()
    assert '01_tiny.ipynb: code cell 1 "cell-1" raised ZeroDivisionError' in said.err
    assert "index.html" not in said.out


def test_a_page_that_another_run_wrote_is_not_taken_for_the_lectures(where):
    """With other parameters, as CONTRIBUTING shows it: the book would have shown that run."""
    folder, build = where.course / "lectures", where.course / "build"
    notebook(folder / "01_tiny.ipynb", "print('size is', size)", parameters="size = 4")
    course.run_lectures(folder, build)
    assert course.Lectures(folder, build).items == []
    run_notebooks([folder / "01_tiny.ipynb"], build, Running({"size": 2}))
    (page,) = build.rglob("01_tiny.html")
    assert "size is 2" in page.read_text()
    assert course.run_lectures(folder, build).what == "lectures run: 1 of 1"
    assert "size is 4" in page.read_text()


def test_a_torn_record_of_lectures_is_written_anew_and_a_full_disk_tears_none(where):
    folder, build = where.course / "lectures", where.course / "build"
    build.mkdir(exist_ok=True)
    (build / "lectures.json").write_text("")
    assert course.run_lectures(folder, build).what == "lectures run: 1 of 1"
    record = (build / "lectures.json").read_text()
    notebook(folder / "01_tiny.ipynb", "print('a last lecture')")
    with full_disk(1), pytest.raises(OSError, match="too large"):
        course.Lectures(folder, build).take(Report(0, ["it raised ValueError", 0.0, ""]))
    assert (build / "lectures.json").read_text() == record


def test_what_comes_next_works_as_it_is_printed(where):
    said = course.next_steps(where.course / "build" / "sample-class")
    steps = [line.strip().partition("    ")[0] for line in said.splitlines()[1:]]
    assert steps[0] == "make lab"
    (activate,) = [step for step in steps if step.startswith(". ")]
    bare = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
    script = f"{activate.partition('  ')[0]} && command -v autograder"
    done = subprocess.run(["sh", "-c", script], env=bare, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_student_who_is_no_sample_any_more_is_forgotten(where, tmp_path):
    fresh = Places(where.course, tmp_path / "class")
    Journal(fresh.journal).append(judgement("old", points=1))
    samples.hand_in(fresh, lambda place: os.makedirs(place / "ada"), ["ada"])
    assert not fresh.journal.exists()
    Journal(fresh.journal).append(judgement("ada", points=1))
    samples.hand_in(fresh, lambda place: os.makedirs(place / "ada" / "again"), ["ada"])
    assert fresh.journal.exists(), "what was graded of them is kept"
    assert [path.name for path in fresh.submitted.glob("*/*")] == ["again"]


def judgement(student: str, points: int, verdict: str = "failed") -> Judgement:
    from autograder.grade.verdicts import Verdict

    verdicts = [Verdict("test-ring", verdict, points, 2, message="got 1\nexpected 2")]
    return Judgement("key", student, "01_tiny", "now", 0, "none", 1.0, [], verdicts)


@pytest.mark.parametrize(("points", "worth"), [(0, 2), (2, 0)])
def test_a_submission_that_is_not_worth_what_was_said_is_a_problem(points, worth):
    expected = {("ada", "01_tiny"): worth} if worth else {}
    (sentence,) = samples.surprises([judgement("ada", points)], expected)
    got = f"ada, 01_tiny got {points} points, not {worth}: test-ring failed got 1"
    assert sentence.startswith(got)
    assert samples.surprises([judgement("ada", points)], {("ada", "01_tiny"): points}) == []


def test_only_a_submission_that_is_not_worth_what_was_said_is_in_doubt():
    timed_out = SimpleNamespace(is_doubtful=lambda line: True)
    known = samples.Samples(timed_out, {("eve", "01_tiny"): 1})
    lines = {points: judgement("eve", points).as_line().decode() for points in (0, 1)}
    assert [known.is_doubtful(lines[points]) for points in (0, 1)] == [True, False]
    solved = judgement(samples.SOLVED, points=2).as_line().decode()
    assert not known.is_doubtful(solved), "a solution is worth all points"


def test_the_table_ends_with_what_failed():
    rows = [course.Row("lectures", 1.5, "build"), course.Row("pages", 0.5, "here", ["no page"])]
    assert course.table(rows).splitlines() == [
        "lectures     1.5 s  build",
        "pages        0.5 s  here",
        "failed: no page",
    ]


def test_where_no_sandbox_can_be_made_the_sample_class_is_graded_without(
    where, monkeypatch, capsys
):
    path = where.released("01_tiny")
    path.write_bytes(tiny_course.as_bytes(tiny_course.solved(tiny_course.released(where))))
    solved = path.read_bytes()
    monkeypatch.syspath_prepend(where.course / "tests" / "submissions")
    monkeypatch.delitem(sys.modules, "sample_class", raising=False)
    monkeypatch.setattr(course, "COURSE", where.course)
    monkeypatch.setattr(course, "why_no_sandbox", lambda: "this container has no namespaces")
    status = course.main()
    said = capsys.readouterr().out
    assert "grades its own sample class unsandboxed: this container has no namespaces" in said
    assert samples.SOLVED not in said, "solutions are worth all points, and blanks none"
    assert "class graded: 5 submissions, 5 judged now, without a sandbox; 5 feedback" in said
    assert path.read_bytes() == solved, "what a student wrote stays"
    assert status == 1
    assert "failed: eve, 01_tiny got 0 points, not 1" in said, "a wrong guess is a problem"
    assert "ada" in (where.course / "build" / "grades.html").read_text()
    feedback = where.course / "build" / "sample-class" / "feedback"
    assert len(list(feedback.rglob("*.html"))) == 5
