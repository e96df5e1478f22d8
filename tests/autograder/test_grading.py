"""Grading a class for real: papermill, sandbox, journal, nbgrader's gradebook, feedback, export."""

import csv
import html
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import tiny_course
from click.testing import CliRunner
from nbconvert.exporters import HTMLExporter
from nbgrader.api import Gradebook

from autograder import cli
from autograder.batch.grading import GradeOptions, grade, summary
from autograder.collect.tables import as_csv
from autograder.database import opened_gradebook
from autograder.grade import engine as grader
from autograder.grade import gradebook
from autograder.grade.engine import Grader
from autograder.grade.journal import Journal, Judgement
from autograder.grade.warm_kernel import WarmKernel
from autograder.places import COURSE, CourseError
from autograder.report import class_page as report
from autograder.report import export, feedback
from byhand.runtime.walls.isolation import why_no_sandbox

SCRIPT = "<script>alert(1)</script>"
HIDDEN_WORDS = ("987654", "1975308", "HIDDEN", "hidden = ")
NAME = [tiny_course.ASSIGNMENT]
DEADLOCK = "def total(t):\n    if dist.get_rank() == 0:\n        dist.all_reduce(t)\n    return t"
OPTIONS = GradeOptions(sandboxed=not why_no_sandbox(), progress=False)


def make_class(folder: Path):
    """A course and six hand-ins."""
    where = tiny_course.make_course(folder)
    blank = tiny_course.released(where)
    solved = tiny_course.solved(blank)
    hidden_only = "def double(n):\n    return 2 * n if n > 0 else n"
    strange = f"# {SCRIPT}\ndef double(n): raise ValueError('{SCRIPT}')"
    tiny_course.hand_in(where, "ada", solved)
    tiny_course.hand_in(where, "ben", tiny_course.answered(solved, total=DEADLOCK))
    tiny_course.hand_in(where, "cem", tiny_course.answered(solved, double=hidden_only))
    tiny_course.hand_in(where, "dee", tiny_course.answered(blank, double=strange, why=SCRIPT))
    tiny_course.hand_in(where, "eli", b"{", name="broken.ipynb")
    (where.submitted / "fay" / tiny_course.ASSIGNMENT).mkdir(parents=True)
    return where


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The class, graded once, and what came of it."""
    where = make_class(tmp_path_factory.mktemp("graded"))
    outcome = grade(where, NAME, [], OPTIONS)
    return where, {judgement.student: judgement for judgement in outcome.judgements}, outcome


def scores(where) -> dict[str, tuple[float, bool]]:
    """nbgrader's scores, and whether a person still has to mark something."""
    with warnings.catch_warnings(), Gradebook(f"sqlite:///{where.gradebook}") as book:
        warnings.simplefilter("ignore")
        found = book.assignment_submissions(tiny_course.ASSIGNMENT)
        return {s.student.id: (s.score, s.needs_manual_grade) for s in found}


def test_every_submission_gets_its_verdicts(graded):
    _, judgements, outcome = graded
    verdicts = {name: [v.verdict for v in j.verdicts] for name, j in judgements.items()}
    assert verdicts == {
        "ada": ["passed", "passed"],
        "ben": ["passed", "deadlock"],
        "cem": ["failed", "passed"],
        "dee": ["failed", "blank"],
        "eli": ["unreadable", "unreadable"],
        "fay": ["unreadable", "unreadable"],
    }
    assert (outcome.failures, outcome.new) == ([], 6)


def test_the_scores_are_in_nbgraders_gradebook_and_manual_cells_wait(graded):
    where, *_ = graded
    assert scores(where) == {
        "ada": (5.0, True),
        "ben": (2.0, True),
        "cem": (3.0, True),
        "dee": (0.0, True),
        "eli": (0.0, False),
        "fay": (0.0, False),
    }


def test_a_second_run_judges_and_records_nothing(graded, monkeypatch):
    where, *_ = graded
    before = (where.journal.read_bytes(), scores(where))
    monkeypatch.setattr(gradebook, "record", None)  # calling it would fail
    outcome = grade(where, NAME, [], OPTIONS)
    assert (outcome.new, len(outcome.judgements)) == (0, 6)
    assert (where.journal.read_bytes(), scores(where)) == before


def test_a_lost_gradebook_is_made_again_from_the_journal(graded, tmp_path):
    where, *_ = graded
    copy = type(where)(where.course, tmp_path / "class")
    but_for_it = shutil.ignore_patterns(where.gradebook.name)
    shutil.copytree(where.class_dir, copy.class_dir, ignore=but_for_it)
    with opened_gradebook(copy) as gradebook:  # as the formgrader does
        assert gradebook.students == []
    assert grade(copy, NAME, [], OPTIONS).new == 0
    assert scores(copy) == scores(where)


def test_autograded_notebooks_hold_verdicts_and_no_hidden_text(graded):
    where, *_ = graded
    path = where.autograded / "ben" / tiny_course.ASSIGNMENT / "tiny.ipynb"
    text = path.read_text()
    assert '"ename": "deadlock"' in text
    assert not any(word in text for word in HIDDEN_WORDS)


def test_a_page_of_the_formgrader_runs_no_script_of_a_student(graded):
    where, *_ = graded
    path = where.autograded / "dee" / tiny_course.ASSIGNMENT / "tiny.ipynb"
    page, _ = HTMLExporter().from_filename(str(path))
    assert "alert(1)" in page
    assert SCRIPT not in page


def test_feedback_says_what_happened_escaped_and_shows_no_hidden_text(graded):
    where, *_ = graded
    pages = {p.parts[-3]: p.read_text() for p in feedback.write_feedback(where, NAME, [])}
    assert set(pages) == {"ada", "ben", "cem", "dee", "eli", "fay"}
    assert "Where each rank was" in pages["ben"]
    assert "all_reduce" in pages["ben"]
    assert "a hidden number" in pages["cem"]
    assert html.escape(SCRIPT) in pages["dee"]
    assert "not a readable notebook" in pages["eli"]
    assert "No notebook was found" in pages["fay"]
    for page in pages.values():
        assert "<script" not in page
        assert not any(word in page for word in HIDDEN_WORDS)


def test_the_class_page_counts_verdicts_and_links_to_feedback(graded, tmp_path):
    where, *_ = graded
    feedback.write_feedback(where, NAME, ["ada"])
    page = report.write_report(where, where.class_dir / "grades.html").read_text()
    assert 'href="feedback/ada/01_tiny/tiny.html"' in page
    assert page.count(">2 of 6<") == 2  # tasks, each passed by two of six
    assert "1 deadlock" in page  # in the words over a bar


def test_export_gives_a_row_for_each_submission(graded):
    where, *_ = graded
    rows = list(csv.DictReader(as_csv(export.plain(where, NAME)).splitlines()))
    assert len(rows) == 6
    ben = next(row for row in rows if row["student"] == "ben")
    assert (ben["score"], ben["max_score"], ben["needs_manual_grade"]) == ("2", "6", "yes")
    assert ben["verdicts"] == "test-double=passed test-total=deadlock"


def test_a_hand_in_in_which_words_alone_were_written_is_not_called_blank(tmp_path):
    where = tiny_course.make_course(tmp_path)
    blank = tiny_course.released(where)
    tiny_course.hand_in(where, "gil", blank)
    tiny_course.hand_in(where, "hal", tiny_course.answered(blank, why=tiny_course.WORDS))
    outcome = grade(where, NAME, [], OPTIONS)
    assert {v.verdict for one in outcome.judgements for v in one.verdicts} == {"blank"}
    assert {one.student: one.standing for one in outcome.judgements} == {"gil": "blank", "hal": ""}
    assert [*summary(outcome)][2:] == ["  1 blank, 01_tiny: gil."]


# nbgrader's own command reaches the same engine


def test_nbgrader_autograde_uses_this_engine(tmp_path):
    where = make_class(tmp_path)
    from autograder.release.generate import register

    register(where, tiny_course.ASSIGNMENT)
    config = tmp_path / "nbgrader_config.py"
    config.write_text(
        "from pathlib import Path\nfrom autograder.nbgrader_config import settings\n"
        "from autograder.places import Places\n"
        f"get_config().merge(settings(Places(Path({str(where.course)!r}),"
        f" Path({str(where.class_dir)!r}))))\n"
    )
    command = [sys.executable, "-m", "nbgrader", "autograde", tiny_course.ASSIGNMENT]
    environment = dict(os.environ)
    if why_no_sandbox():
        environment[gradebook.UNSANDBOXED_VARIABLE] = "1"
    done = subprocess.run(
        [*command, "--student", "ben"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert scores(where) == {"ben": (2.0, True)}
    assert [j.student for j in Journal(where.journal).latest()] == ["ben"]


def test_the_config_file_of_this_course_names_this_engine():
    from traitlets.config import PyFileConfigLoader

    loader = PyFileConfigLoader("nbgrader_config.py", str(COURSE / "autograder"))
    config = loader.load_config()
    assert config.CourseDirectory.root == str(COURSE)
    assert "autograder.grade.gradebook.WriteVerdicts" in config.Autograde.autograde_preprocessors


# The journal


def judgement(student: str, key: str, verdicts=()) -> Judgement:
    return Judgement(key, student, "01_tiny", "2026-01-01", 1, "none", 0.1, [], list(verdicts))


def test_a_torn_last_line_is_ignored_and_the_next_line_is_whole(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.append(judgement("ada", "1"))
    with open(journal.path, "ab") as file:
        file.write(judgement("ben", "2").as_line()[:40])
    again = Journal(journal.path)
    again.append(judgement("cem", "3"))
    assert [j.student for j in again.latest()] == ["ada", "cem"]
    assert again.find("2") is None


def test_the_latest_judgement_of_a_student_counts(tmp_path):
    journal = Journal(tmp_path / "journal")
    for key in ("1", "2", "1"):
        journal.append(judgement("ada", key))
    assert [j.key for j in journal.latest()] == ["1"]


# What goes wrong around a submission


def test_a_dead_kernel_is_replaced_and_then_costs_nobody_a_mark(graded, tmp_path, monkeypatch):
    where, *_ = graded
    copy = type(where)(where.course, tmp_path / "class")
    shutil.copytree(where.submitted / "ada", copy.submitted / "ada")
    calls = []
    monkeypatch.setattr(WarmKernel, "_run", lambda *_: calls.append(1) or 1 / 0)
    outcome = grade(copy, NAME, [], OPTIONS)
    assert len(calls) == 2
    assert "ada, 01_tiny could not be judged: ZeroDivisionError" in outcome.failures[0]
    assert scores(copy) == {}


def test_without_a_sandbox_grading_refuses_and_says_what_to_install(graded, monkeypatch):
    where, *_ = graded
    monkeypatch.setattr(grader, "why_no_sandbox", lambda: "bubblewrap is not installed")
    with pytest.raises(CourseError, match=r"bubblewrap is not installed.*--unsandboxed"):
        Grader(where)
    Grader(where, sandboxed=False).close()


def test_the_level_of_separation_is_part_of_the_record(graded):
    _, judgements, _ = graded
    assert judgements["ada"].sandbox == ("none" if why_no_sandbox() else "bubblewrap")


# The command line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["grade", "09_none"], "no assignment 09_none; there are"),
        (["grade"], "nothing was handed in"),
        (["report"], "nothing was graded yet"),
        (["export"], "nothing was graded yet"),
        (["feedback"], "there is nothing to return yet"),
        (["feedback", "--student", "adda"], "nothing was handed in by adda"),
        (["collect", "01_ranks", "/nowhere"], "/nowhere is not a folder"),
        (["collect", "01_ranks", "."], ". is empty: nothing was collected"),
        (["export", "--column", "Ranks"], "a column in the file that --fill names"),
        (["grade", "--class", "/dev/null"], "/dev/null is a file, and a class is a folder"),
    ],
)
def test_bad_input_gets_a_sentence(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.setenv("CLASS", str(tmp_path / "class"))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 1
    assert sentence in result.output
    assert "Traceback" not in result.output


def test_interrupting_says_that_nothing_is_lost(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.batch.grading.grade", interrupt)
    for more, then in (([], "same command goes on"), (["--again"], "would judge all of it again")):
        result = CliRunner().invoke(cli.main, ["grade", "--class", str(tmp_path), *more])
        assert "interrupted. What was graded is kept" in result.output
        assert then in result.output
