"""After the tests: lateness, marks by hand, grading again, CSV for Canvas and Moodle."""

import datetime
import html
import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from dataclasses import replace

import graded_class
import pytest
import tiny_course
from click.testing import CliRunner
from graded_class import DOUBLE, NAME, TOTAL, failed, judge
from nbconvert.exporters import HTMLExporter
from nbgrader.api import Gradebook
from test_jobs import full_disk

from autograder import cli, commands
from autograder.batch.grading import grade
from autograder.collect.hand_ins import collect
from autograder.collect.tables import as_csv
from autograder.commands import told
from autograder.grade import late
from autograder.grade.engine import Grader
from autograder.grade.gradebook import record
from autograder.grade.journal import Journal, Judgement
from autograder.grade.marks import read_marks
from autograder.grade.verdicts import infrastructure
from autograder.places import CourseError, Places
from autograder.report import again, export
from autograder.report.feedback import write_feedback

DAY = 86_400


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return graded_class.make(tmp_path_factory.mktemp("graded"))


@pytest.fixture
def where(made, tmp_path):
    copy = Places(made.course, tmp_path / "class")
    shutil.copytree(made.class_dir, copy.class_dir)
    return copy


def marks(where, student):
    return read_marks(where, Journal(where.journal).latest())[NAME, student]


def book(where):
    warnings.simplefilter("ignore")
    return Gradebook(f"sqlite:///{where.gradebook}")


def mark_words(where, student: str, points: float, cell: str = "why"):
    """Mark the answer in words, or another, as a person does in the formgrader."""
    with book(where) as gradebook:
        grade = gradebook.find_grade(cell, "tiny", NAME, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()


def hand_in_at(where, student: str, moment: str):
    (where.submitted / student / NAME / "timestamp.txt").write_text(f"{moment}\n")


def policy(where, text: str):
    (where.class_dir / late.FILE).write_text(text)


# Lateness


@pytest.mark.parametrize(
    ("seconds", "points"),
    [(0, 0), (600, 0), (601, 1), (DAY + 600, 1), (DAY + 601, 2), (9 * DAY, 5)],
)
def test_each_day_begun_after_the_grace_costs_its_share(seconds, points):
    rule = late.Policy(percent_per_day=10, most_percent=50, grace_minutes=10)
    assert rule.penalty(10, seconds) == points


def test_a_late_submission_loses_points_and_an_extension_gives_them_back(where):
    hand_in_at(where, "ada", "2026-03-03T12:00:00")
    text = f"[late]\npercent_per_day = 10\n[due]\n{NAME} = 2026-03-01T13:00:00+01:00\n"
    policy(where, text)
    late.apply(where)
    assert (marks(where, "ada").late_penalty, marks(where, "ada").score) == (1, 4)
    policy(where, text + f"[extension.{NAME}]\nada = 1\n")
    for _ in range(2):
        late.apply(where)
        assert marks(where, "ada").late_penalty == 0.5
    policy(where, text + f"[extension.{NAME}]\nada = 1\nadda = 1\n")
    assert late.apply(where) == [
        f"class.toml, [extension.{NAME}]: nothing of adda is graded; is the name right?"
    ]


def test_a_late_student_is_told_when_it_was_due_when_it_came_and_the_rule(where):
    hand_in_at(where, "ada", "2026-03-03T12:00:00")
    rule = "[late]\npercent_per_day = 10\nmost_percent = 50\ngrace_minutes = 15\n"
    due = f"[due]\n{NAME} = 2026-03-01T13:00:00+01:00\n[extension.{NAME}]\nada = 1\n"
    policy(where, rule + due)
    pages = {page.parts[-3]: page.read_text() for page in write_feedback(where, [NAME], [])}
    assert (
        "It was due on 2026-03-02 12:00 UTC, with your extension of 1 day, and came on 2026-03-03"
        " 12:00 UTC. Each day begun costs 10 % of the score, 50 % at most; the first 15 minutes"
        " are free."
    ) in pages["ada"]
    assert not any("It was due" in text for name, text in pages.items() if name != "ada")
    policy(where, due)
    late.apply(where)
    assert marks(where, "ada").lateness.endswith("Lateness costs nothing here.")


def test_what_class_toml_says_no_more_is_taken_back_and_the_formgraders_stays(where):
    hand_in_at(where, "ada", "2026-03-03T12:00:00")
    rate, due = "[late]\npercent_per_day = 10\n", f"[due]\n{NAME} = 2026-03-01T13:00:00+01:00\n"
    policy(where, rate + due + f"[extension.{NAME}]\nada = 2\n")
    late.apply(where)
    assert marks(where, "ada").late_penalty == 0
    policy(where, rate + due)
    late.apply(where)
    assert marks(where, "ada").late_penalty == 1, "the extension is taken back"
    policy(where, rate)
    late.apply(where)
    assert marks(where, "ada").late_penalty == 0, "and the due date"
    with book(where) as gradebook:
        gradebook.find_assignment(NAME).duedate = datetime.datetime(2026, 3, 1, 12)
        gradebook.db.commit()
    late.apply(where)
    assert marks(where, "ada").late_penalty == 1, "what the formgrader says stays"
    policy(where, rate + f"[due]\n{NAME} = 2026-05-01\n")
    late.apply(where)
    with book(where) as gradebook:
        gradebook.find_assignment(NAME).duedate = datetime.datetime(2026, 3, 1, 12)
        gradebook.db.commit()
    policy(where, rate)
    late.apply(where)
    assert marks(where, "ada").late_penalty == 1, "also what it said before the file's went"


def test_a_mark_and_a_time_that_come_after_grading_count(where):
    """Both by hand: the mark in the formgrader, the time beside the notebook."""
    (where.submitted / "ada" / NAME / "timestamp.txt").write_text("2026-03-02 12:00:00 UTC")
    (where.submitted / "ben" / NAME / "timestamp.txt").write_text("yesterday")
    policy(where, f"[late]\npercent_per_day = 50\n[due]\n{NAME} = 2026-03-02T00:00:00Z\n")
    mark_words(where, "ada", 1)
    late.apply(where)
    assert (marks(where, "ada").late_penalty, marks(where, "ada").score) == (3, 3)
    assert marks(where, "ben").late_penalty == 0


def test_a_second_hand_in_whose_time_is_not_known_is_not_late_like_the_first(where, tmp_path):
    hand_in_at(where, "ada", "2026-03-03 12:00:00 UTC")
    policy(where, f"[late]\npercent_per_day = 10\n[due]\n{NAME} = 2026-03-01T12:00:00Z\n")
    late.apply(where)
    assert marks(where, "ada").late_penalty == 1
    second = tiny_course.answered(tiny_course.solved(tiny_course.released(where)), why="Again.")
    (tmp_path / "inbox" / "ada").mkdir(parents=True)
    (tmp_path / "inbox" / "ada" / "tiny.ipynb").write_bytes(tiny_course.as_bytes(second))
    collect(where, NAME, tmp_path / "inbox")
    judge(where, "ada", DOUBLE, TOTAL, when="2026-03-09T09:00:00+00:00")
    late.apply(where)
    now = marks(where, "ada")
    assert (now.late_penalty, now.score, now.lateness) == (0, 5, "")


def test_newer_work_waits_for_its_grade_and_older_work_is_not_fined_for_it(where, tmp_path):
    policy(where, f"[late]\npercent_per_day = 10\n[due]\n{NAME} = 2026-03-01T12:00:00Z\n")
    mark_words(where, "ada", 1)

    def rows():
        return {row["student"]: row for row in export.plain(where, [NAME])}

    assert (rows()["ada"]["score"], rows()["ada"]["no_mark"]) == (6, "")
    tiny_course.hand_in(where, "ada", tiny_course.released(where))
    hand_in_at(where, "ada", "2026-03-03 12:00:00 UTC")
    assert (rows()["ada"]["score"], rows()["ada"]["late_penalty"]) == (None, 0)
    assert "handed in again, and not graded yet: run autograder" in rows()["ada"]["no_mark"]
    [page] = write_feedback(where, [NAME], ["ada"])
    assert "No mark yet" in page.read_text()
    assert "for lateness" not in page.read_text()
    assert rows()["cem"]["score"] == 2
    tiny_course.hand_in(where, "ada", tiny_course.solved(tiny_course.released(where)))
    assert (rows()["ada"]["score"], rows()["ada"]["late_penalty"]) == (4.8, 1.2), "the same work"


def test_nbgraders_own_feedback_is_our_page_with_lateness_and_the_classs_board(where):
    from nbgrader.converters import GenerateFeedback
    from nbgrader.coursedir import CourseDirectory

    from autograder.nbgrader_config import settings
    from autograder.release.generate import quiet_nbgrader
    from autograder.report.feedback import write_feedback

    hand_in_at(where, "cem", "2026-03-03T12:00:00")
    policy(where, f"[late]\npercent_per_day = 10\n[due]\n{NAME} = 2026-03-01T13:00:00+01:00\n")
    on_it = {"name": "Noether", "row": [["seconds", 0.5]]}
    judge(where, "ada", replace(DOUBLE, board=on_it), TOTAL, when="2026-03-09T09:00:00+00:00")
    config = settings(where)
    config.CourseDirectory.assignment_id = NAME
    with quiet_nbgrader():
        GenerateFeedback(coursedir=CourseDirectory(config=config), config=config).start()
    theirs = {path: path.read_text() for path in where.feedback.rglob("*.html")}
    assert len(theirs) == 4
    assert all("Noether" in page for page in theirs.values())
    assert ["cem"] == [path.parts[-3] for path, page in theirs.items() if "It was due on" in page]
    assert theirs == {path: path.read_text() for path in write_feedback(where, [NAME], [])}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[late", r"no description of due dates: Expected ']' at the end"),
        ("[late]\npercent_per_day = -1", "percent_per_day has to be a number from 0 to 1,000,000"),
        ("[late]\ngrace_minutes = inf", "grace_minutes has to be a number from 0 .*, and is inf"),
        ("[late]\nmost_percent = nan", "most_percent has to be a number from 0 .*, and is nan"),
        ("[extension.01_tiny]\nada = 1e12", "ada has to be a number from 0 .*, and is 1000000000"),
        ("[due]\n01_tiny = 9999-12-31T23:59:59-01:00", "due dates: date value out of range"),
        ("[due]\n01_tiny = 9999-12-30\n[extension.01_tiny]\nada = 9", "later is after year 9999"),
        ("[late]\npercent = 1", r"\[late\] has percent_per_day, .*, and no percent\."),
        ("[due]\n01_tiny = 'tomorrow'", "01_tiny has to be a date or a time"),
        ("due = 2026-03-01", r"due is none of the tables \[late\], \[due\], \[extension"),
        ("[dues]\n01_tiny = 2026-03-01", "dues is none of the tables"),
        ("[extension]\n01_tiny = 2", r"needs an assignment behind a dot: \[extension.01_ranks\]"),
    ],
)
def test_a_wrong_policy_is_answered_with_what_is_wrong_and_an_example(where, text, sentence):
    policy(where, text)
    with pytest.raises(CourseError, match=sentence) as told:
        late.apply(where)
    assert str(told.value).endswith(f"One looks like this:\n\n{late.EXAMPLE}")


def test_a_policy_for_an_assignment_that_there_is_not_names_those_that_there_are(where):
    policy(where, "[due]\n01_tyni = 2026-03-01")
    with pytest.raises(CourseError, match="names 01_tyni, no assignment; there are 01_tiny"):
        late.apply(where)


def test_a_disk_too_full_for_the_gradebook_is_one_sentence_on_the_command_line(where, monkeypatch):
    hand_in_at(where, "ada", "2026-03-03T12:00:00")
    policy(where, f"[late]\npercent_per_day = 10\n[due]\n{NAME} = 2026-03-01\n")
    monkeypatch.setattr(commands, "places", lambda *_: where)
    with full_disk(100):
        said = CliRunner().invoke(cli.main, ["export"])
    assert said.output == (
        "Error: there is no room on the disk: make some, and give the same command again."
        " What was graded so far is kept.\n"
    )
    CliRunner().invoke(cli.main, ["export"])
    assert marks(where, "ada").late_penalty > 0


@pytest.mark.parametrize("command", ["export", "grade"])
def test_a_damaged_gradebook_is_one_sentence_and_made_again_once_it_is_gone(
    where, monkeypatch, command
):
    monkeypatch.setattr(commands, "places", lambda *_: where)
    more = ["--unsandboxed"] if command == "grade" else []
    whole = where.gradebook.read_bytes()
    for damaged in (b"no database at all" * 1000, whole[: len(whole) // 2]):
        where.gradebook.write_bytes(damaged)
        said = CliRunner().invoke(cli.main, [command, *more]).output
        assert "Error: the gradebook is damaged" in said
        assert "or delete it; then run autograder grade" in said
    where.gradebook.unlink()
    assert CliRunner().invoke(cli.main, ["grade", "--unsandboxed"]).exit_code == 0
    assert (marks(where, "ada").score, marks(where, "cem").score) == (5, 2)


def test_a_date_without_a_time_is_its_last_second(where):
    policy(where, late.EXAMPLE.replace("01_ranks", NAME).replace("T23:59:00+01:00", ""))
    due = late.class_policy(where).due[NAME]
    there = due.replace(tzinfo=datetime.UTC).astimezone()
    assert (there.day, there.hour, there.second) == (1, 23, 59)


ANSWERS = (
    "see [my notes](javascript:alert(1))",
    "![my drawing](attachment:drawing.png)",
    "```\n</code></pre><img src=x onerror=alert(1)>\n````\n[a](javascript:alert(1))",
    "$\\href{javascript:alert(1)}{x}$\r\n~~~\n<javascript:alert(1)>",
)


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_formgrader_shows_an_answer_in_words_as_it_was_typed(where, answer):
    right = tiny_course.solved(tiny_course.released(where))
    tiny_course.hand_in(where, "eva", tiny_course.answered(right, why=answer))
    judge(where, "eva", DOUBLE, TOTAL)
    page, _ = HTMLExporter().from_filename(str(where.autograded / "eva" / NAME / "tiny.ipynb"))
    shown = html.escape(answer.replace("\r\n", "\n"), quote=False)
    assert f"<pre><code>{shown}\n</code></pre>" in page


def test_an_answer_left_as_it_was_given_out_is_still_worth_nothing(where):
    answers = {"double": tiny_course.DOUBLE, "total": tiny_course.TOTAL}
    blank = tiny_course.released(where)
    tiny_course.hand_in(where, "eva", tiny_course.answered(blank, **answers))
    judge(where, "eva", DOUBLE, TOTAL)
    assert not marks(where, "eva").waiting


# Canvas and Moodle


def students(where, **known: dict[str, str]):
    where.students.write_text(json.dumps(known))


def marked(where):
    for student, points in {"ada": 1, "ben": 0, "cem": 0.5}.items():
        mark_words(where, student, points)


CANVAS = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Essay (7),Tiny (8),Final Score
Manual Posting,,,,,,,
    Points Possible,,,,,10,12,(read only)
"Lovelace, Ada",1234,s1,al@x,A,9,,90
"B, Ben",55,s2,ben,A,3,4,30
"D, Dee",56,s4,dee,A,3,3,30
"Stranger, The",77,s3,zz,A,3,1,30
"""


def filled(where, text: str, column: str = ""):
    """The file of an LMS with the grades of the class."""
    marked(where)
    path = where.class_dir / "lms.csv"
    path.write_text(text)
    return export.filled(where, NAME, path, column)


def test_a_canvas_export_is_filled_in_and_nothing_else_changes(where):
    students(where, canvas={"1234": "ada"})
    sheet, left = filled(where, CANVAS)
    want = CANVAS.replace("A,9,,90", "A,9,12,90").replace("3,4,30", "3,10,30")
    assert as_csv(sheet) == want.removeprefix("\ufeff"), "what is left keeps Canvas's own points"
    assert left == [
        "scaled from 6 to 12 points, as there",
        "cem: left as it was, no row is theirs",
        "dee: left as it was, a person still has to mark it",
    ]


def test_a_number_that_is_known_counts_more_than_a_name(where):
    """The row with the login ben is another person's: ours has the number 77."""
    students(where, canvas={"77": "ben"})
    sheet, _ = filled(where, CANVAS)
    assert [row["Tiny (8)"] for row in sheet[2:]] == ["", "4", "3", "10"]


def test_a_column_that_cannot_be_found_is_asked_for(where):
    other = CANVAS.replace("Tiny", "Week 1")
    with pytest.raises(
        CourseError, match=r"no columns called 01_tiny or tiny.*Essay \(7\), Week 1 \(8"
    ):
        filled(where, other)
    assert filled(where, other, "Week 1")[0][3]["Week 1 (8)"] == "10"


MOODLE = """Identifier,"Full name","Email address",Status,Grade,"Maximum Grade",\
"Grade can be changed","Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 12","Ada Lovelace",ada@x,"Submitted for grading",,100,Yes,-,-,
"Participant 13",Ben,b@x,"Submitted for grading",,100,No,-,-,
"""


def test_a_moodle_worksheet_is_filled_in(where):
    students(where, **{f"moodle {NAME}": {"12": "ada"}, "moodle 02_other": {"13": "cem"}})
    (ada, ben), left = filled(where, MOODLE.replace("Ben,b@x", "Ben,ben"))
    assert (ada["Grade"], ben["Grade"]) == ("100", "")
    assert "ben: left as it was, Moodle says that the grade cannot be changed" in left


def test_an_answer_in_words_that_nobody_marked_is_no_zero(tmp_path):
    where = graded_class.of_words(tmp_path)
    students(where, **{f"moodle {NAME}": {"12": "ada"}})
    path = where.class_dir / "lms.csv"
    path.write_text(MOODLE)

    def told():
        (row, _), left = export.filled(where, NAME, path)
        (ours,) = export.plain(where, [NAME])
        return row["Grade"], ours["max_score"], left[-1].partition(": left as it was, ")[2]

    assert told() == ("", 1, "it was handed in, and not graded yet: run autograder grade")
    for is_entered in (False, True):
        judge(where, "ada", is_entered=is_entered)
        assert told() == ("", 1, "a person still has to mark it")
    mark_words(where, "ada", 1)
    assert told() == ("100", 1, "")


def test_the_formgrader_shows_what_people_are_called(where):
    def names():
        late.apply(where)
        with book(where) as gradebook:
            return {s.id: f"{s.last_name}, {s.first_name}" for s in gradebook.students}

    assert names() == {"ada": "ada, –", "ben": "ben, –", "cem": "cem, –", "dee": "dee, –"}
    with book(where) as gradebook:
        gradebook.update_or_create_student("cem", first_name="Cem", last_name="by hand")
    students(where, **{f"moodle {NAME}": {"12": "ada", "13": "cem"}})
    filled(where, MOODLE)
    after = names()
    assert after["ada"] == "Lovelace, Ada"
    assert after["cem"] == "by hand, Cem"
    assert late._first_and_last("van der Berg, Jan") == ("Jan", "van der Berg")


@pytest.mark.parametrize("command", ["export", "feedback", "report", "grade"])
def test_what_reads_marks_loads_neither_torch_nor_nbgraders_commands(made, tmp_path, command):
    variables = {**os.environ, "CLASS": str(made.class_dir), "COURSE": str(made.course)}
    more = ["--unsandboxed"] if command == "grade" else []
    program = [sys.executable, "-X", "importtime", "-m", "autograder", command, *more]
    done = subprocess.run(program, env=variables, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "nbgrader.api" in loaded
    assert not {"torch", "papermill", "nbgrader.apps", "nbconvert"} & loaded


def test_of_two_rows_with_a_students_name_none_is_filled_in(where):
    """Nothing says which of the two handed in."""
    sheet, left = filled(where, MOODLE.replace("Ada Lovelace", "ada").replace("Ben,b@x", "ada,b@x"))
    assert [row["Grade"] for row in sheet] == ["", ""]
    assert "ada: left as it was, several rows have their name" in left


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "Identifier,Grade\n1,2\n"])
def test_another_file_is_neither(where, text):
    with pytest.raises(CourseError, match="no gradebook that Canvas exported, nor a grading"):
        filled(where, text)


def test_a_file_is_filled_in_for_one_assignment(where, monkeypatch):
    (where.class_dir / "lms.csv").write_text(CANVAS)
    monkeypatch.setattr(commands, "places", lambda *_: where)
    arguments = ["export", "--fill", str(where.class_dir / "lms.csv")]
    assert "name it with --assignment" in CliRunner().invoke(cli.main, arguments).output
    said = CliRunner().invoke(cli.main, [*arguments, "--assignment", NAME])
    assert "Lovelace, Ada" in said.output


def test_pages_go_into_moodles_folders_by_number(where, monkeypatch, tmp_path):
    """Two have one name, of whom collect left out the second; one the class calls otherwise."""
    monkeypatch.setattr(commands, "places", lambda *_: where)
    students(where, **{f"moodle {NAME}": {"12": "ada", "7": "ben", "15": "cem"}})
    folders = ["Wei Z_12", "Wei Z_99", "Ben O’B_7", "Participant_15"]
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        for name in folders:
            archive.writestr(f"{name}_assignsubmission_file_/tiny.ipynb", b"{}")
            archive.writestr(f"{name}_assignsubmission_onlinetext_/onlinetext.html", b"")
    given = ["feedback", NAME, "--moodle", str(tmp_path / "m.zip")]
    said = CliRunner().invoke(cli.main, given).output
    assert "\n  Wei Z_99_assignsubmission_onlinetext_: there is no page for number 99" in said
    assert "\n  dee: there is no folder for this page" in said
    with zipfile.ZipFile(where.feedback / f"{NAME}.zip") as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    whose = {"Wei Z_12": "ada", "Ben O’B_7": "ben", "Participant_15": "cem"}
    want = {f"{name}_assignsubmission_file_/tiny.html": whose[name] for name in whose}
    pages = {who: where.feedback / who / NAME / "tiny.html" for who in whose.values()}
    assert found == {name: pages[who].read_text() for name, who in want.items()}
    given[-1] = str(where.submitted)
    shutil.rmtree(where.feedback)
    assert "is no download of Moodle's" in CliRunner().invoke(cli.main, given).output
    assert not where.feedback.exists()


# Again


def judged(*verdicts, **more) -> Judgement:
    told = {"cells": [("total", "code", "total = sum")], **more}
    return replace(Judgement("key", "cem", NAME, "", 1, "none", 1.5, [], list(verdicts)), **told)


LOST = failed(TOTAL, "rank 0: got 1\n\nTraceback")
CHANCE = "nothing else changed: the answer itself depends on chance or on time"
TESTS = "the tests, their limits, the seed or the library changed since"
TASK = "  test-total: failed in “two ranks” (0 of 3): rank 0: got 1 -> passed (3 of 3)"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"cells": [("total", "code", "")], "key": "other"}, "the submission changed, in total"),
        ({"seed": 2, "key": "other"}, TESTS),  # it is made from the tests, too
        ({"key": "other"}, TESTS),
        ({}, CHANCE),
    ],
)
def test_grading_again_says_which_points_changed_and_why(where, more, why):
    (said,) = again.changes(where, [judged(DOUBLE, LOST)], [judged(DOUBLE, TOTAL, **more)])
    assert said.splitlines() == [f"cem, 01_tiny: 2 -> 5 points from tests; {why}", TASK]


def test_grading_again_says_where_a_mark_by_hand_stays(where):
    mark_words(where, "cem", 2, "test-total")
    before = Journal(where.journal).latest()
    judge(where, "cem", DOUBLE, TOTAL, when="2026-03-09T09:00:00+00:00")
    (said,) = again.changes(where, before, Journal(where.journal).latest())
    first = "cem, 01_tiny: 2 -> 5 points from tests, and the mark by hand stays; "
    assert said.startswith(first)
    assert marks(where, "cem").score == 4


def test_what_a_terminal_would_obey_is_not_said_to_it(where):
    obeyed = failed(TOTAL, "\x1b[2K\x1b[1A\x1b]0;owned\x07 \u202e")
    said = told([*again.changes(where, [judged(DOUBLE, TOTAL)], [judged(DOUBLE, obeyed)])])
    assert r"\x1b[2K\x1b[1A\x1b]0;owned\x07 \u202e" in said
    assert said.replace("\n", "").isprintable()


def test_the_same_points_and_what_is_new_or_could_not_be_judged_are_not_told(where):
    others = [judged(DOUBLE, LOST), judged(infrastructure("test-total", 3, "no kernel"))]
    assert not [*again.changes(where, others[:1], others)]
    assert not [*again.changes(where, [], [judged(DOUBLE)])]


def test_a_mark_given_by_hand_survives_grading_again(where):
    mark_words(where, "cem", 1)
    judge(where, "cem", DOUBLE, TOTAL, when="2026-03-09T09:00:00+00:00")
    assert marks(where, "cem").score == 6


def test_a_mark_given_by_hand_waits_for_a_person_only_where_the_work_below_it_changed(where):
    mark_words(where, "cem", 1)
    mark_words(where, "cem", 2, "test-total")
    lost = failed(TOTAL, "rank 0: got 1")
    for day in "89":
        judge(where, "cem", DOUBLE, lost, when=f"2026-03-0{day}T09:00:00+00:00")
        assert (marks(where, "cem").score, marks(where, "cem").unmarked) == (5, frozenset())
    right = tiny_course.solved(tiny_course.released(where))
    work = {"total": "def total(t):\n    return 2 * t"}
    for more, waiting in (({}, {"test-total"}), ({"why": "Now."}, {"test-total", "why"})):
        tiny_course.hand_in(where, "cem", tiny_course.answered(right, **work, **more))
        judge(where, "cem", DOUBLE, lost, when="2026-03-10T09:00:00+00:00")
        assert (marks(where, "cem").score, marks(where, "cem").unmarked) == (5, waiting)


def test_work_handed_in_again_as_it_was_before_counts_when_the_formgrader_grades_it_too(where):
    """Right, wrong, and the first again."""
    right = tiny_course.solved(tiny_course.released(where))
    wrong = tiny_course.answered(right, total="def total(t):\n    return t")
    tiny_course.hand_in(where, "ada", wrong)
    judge(where, "ada", DOUBLE, failed(TOTAL, "rank 0: got 1"), when="2026-03-09T09:00:00+00:00")
    assert marks(where, "ada").score == 2
    tiny_course.hand_in(where, "ada", right)
    with Grader(where, sandboxed=False) as grader:
        for _ in range(2):
            record(grader, "ada", NAME)
    ada = export.plain(where, [NAME])[0]
    assert (ada["student"], ada["score"], ada["no_mark"]) == ("ada", 5, "")
    assert len(where.journal.read_bytes().splitlines()) == 4 + 2


def test_a_judgement_that_the_gradebook_has_not_yet_is_not_mixed_with_its_older_marks(where):
    """Grading ended between the two."""
    tiny_course.hand_in(where, "cem", tiny_course.solved(tiny_course.released(where)))
    judge(where, "cem", DOUBLE, TOTAL, when="2026-03-09T09:00:00+00:00", is_entered=False)
    rows = {row["student"]: row for row in export.plain(where, [NAME])}
    assert (rows["cem"]["score"], rows["cem"]["max_score"]) == (None, 6)
    assert "not in the gradebook yet: run autograder grade" in rows["cem"]["no_mark"]
    assert rows["dee"]["score"] == 2
    [page] = write_feedback(where, [NAME], ["cem"])
    assert "A person then gave" not in page.read_text()
    grade(where, [NAME], options=graded_class.OPTIONS)
    rows = {row["student"]: row for row in export.plain(where, [NAME])}
    assert (rows["cem"]["score"], rows["cem"]["no_mark"]) == (5, "")
