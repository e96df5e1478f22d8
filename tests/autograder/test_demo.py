"""`autograder demo`: twelve kinds of hand-in, a line for each, and nothing outside build/demo."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import demo_class
import pytest
import tiny_course
from click.testing import CliRunner

from autograder import cli, demo, serve
from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks
from autograder.grade.verdicts import Verdict, passed
from autograder.places import COURSE

PASSED = passed("test-ring", 2, 0.1)


def judgement(student, *verdicts, suspicions=()):
    about = "key", student, "01_tiny", "now", 0, "none", 1.0, []
    return Judgement(*about, list(verdicts), suspicions=list(suspicions))


def lines(*judgements, late=0, width=100):
    marks = {(j.assignment, j.student): Marks(j.points - late, 2, late) for j in judgements}
    return list(demo.lines(demo.Demo(None, list(judgements), marks, []), width))


def lost(verdict, message):
    return Verdict("test-ring", verdict, 0, 2, message=message)


def test_a_line_says_mark_and_why():
    hang = judgement("ben", lost("deadlock", "rank 1 waits\n\nWhere each was"))
    assert lines(judgement("ada-right", PASSED), hang) == [
        "ada-right    2 of 2  every test passed",
        "ben          0 of 2  ring deadlock: rank 1 waits",
    ]


def test_a_line_says_blank_late_and_noted():
    assert lines(judgement("cem", lost("blank", "ring: nothing was written here."))) == [
        "cem    0 of 2  blank: as it was given out"
    ]
    noted = judgement("kim", PASSED, suspicions=["ring names gc"])
    (line,) = lines(noted, late=0.2)
    assert line == "kim  1.8 of 2  every test passed; late, 0.2 taken off; 1 note to you"


def test_what_is_too_long_for_a_line_is_cut_and_what_a_terminal_obeys_written_out():
    (line,) = lines(judgement("eve", lost("failed", "\x1b[2Kx" * 50)), width=60)
    assert len(line) == 60
    assert line.endswith("…")
    assert r"failed: \x1b[2Kx" in line


def test_the_class_is_twelve_hand_ins_of_every_kind(tmp_path):
    demo_class.write_class(tmp_path)
    assert len(list(tmp_path.glob("*/01_ranks/ranks.ipynb"))) == len(demo_class.CASES) == 12
    kinds = {verdict for case in demo_class.CASES for verdict in case.expected.values()}
    assert kinds == {"passed", "failed", "deadlock", "timeout", "crashed", "blank", "lost"}


def test_where_the_tests_are_not_it_says_what_it_needs(tmp_path):
    where = tiny_course.make_course(tmp_path)
    done = CliRunner().invoke(cli.main, ["demo", "--no-serve", "--course", str(where.course)])
    assert done.exit_code == 1
    assert f"{where.course} is no checkout of the course: " in done.output
    assert not (where.course / "build").exists()


def test_the_formgrader_opens_on_the_class_and_keeps_its_files_in_the_demo(tmp_path, monkeypatch):
    shutil.copytree(COURSE / "solutions" / "01_ranks", tmp_path / "solutions" / "01_ranks")
    where, became = demo.places(tmp_path), {}
    monkeypatch.setattr(os, "execvpe", lambda file, argv, env: became.update(argv=argv, env=env))
    monkeypatch.setattr(serve.late, "apply", lambda where: [])
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "theirs")
    demo.serve(where, ("--port", "9000"))
    assert f"--LabApp.default_url={demo.FIRST}" in became["argv"]
    assert became["argv"][-2:] == ["--port", "9000"]
    assert "--ServerApp.answer_yes=True" in became["argv"], "Ctrl-C ends it"
    assert became["env"]["CLASS"] == str(where.class_dir)
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        assert Path(became["env"][name]).is_relative_to(where.class_dir)
    assert {path.name for path in tmp_path.iterdir()} == {"build", "solutions"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What the demo needs of the checkout."""
    course = tmp_path_factory.mktemp("checkout")
    for name in ("solutions", "tests/answers", "tests/submissions"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(COURSE / name, course / name, ignore=skipped)
    return course


def said(course):
    """What the command says, from beside the course."""
    command = [sys.executable, "-m", "autograder", "demo", "--no-serve", "--course", str(course)]
    here = {**os.environ, "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=course.parent, env=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(course):
    return {
        path: path.read_bytes()
        for path in course.rglob("*")
        if path.is_file() and not path.is_relative_to(course / "build" / "demo")
    }


@pytest.mark.corpus
def test_it_grades_the_class_twice_the_same_and_writes_nowhere_else(checkout):
    before = files(checkout)
    first = said(checkout)
    journal = demo.places(checkout).journal.read_bytes()
    assert journal.count(b"\n") == 12
    assert said(checkout) == first
    assert demo.places(checkout).journal.read_bytes() == journal, "nothing was judged again"
    assert files(checkout) == before
    told = {line.split()[0]: line for line in first.splitlines() if " of 6 " in line}
    assert list(told) == [case.student for case in demo_class.CASES]
    assert "5.4 of 6  every test passed; late, 0.6 taken off" in told["jon-late"]
    assert "receives in a cycle" in told["gil-hang"]
    assert "No such file or directory" in told["kim-hostile"]
    named = [line.split()[0] for line in first.splitlines() if line.startswith("  ")]
    assert len(named) == 4
    assert all((checkout.parent / name).is_file() for name in named)
