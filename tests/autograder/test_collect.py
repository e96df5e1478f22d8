"""Collect: what Canvas, Moodle and plain folders pack; nothing in it leads anywhere else."""

import os
import stat
import time
import zipfile
from pathlib import PurePosixPath

import nbformat
import pytest
import tiny_course
from click.testing import CliRunner
from test_jobs import full_disk

from autograder import cli
from autograder.collect import inbox
from autograder.collect.door import UNREADABLE, hand_ins, opened
from autograder.collect.hand_ins import NAMESAKE, NO_NOTEBOOK, NOBODYS, collect, who_is_who
from autograder.collect.names import Sender, sender_of
from autograder.collect.uploads import MAX_BYTES
from autograder.places import CourseError, Places

NAME = tiny_course.ASSIGNMENT


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return tiny_course.make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def where(course, tmp_path):
    return Places(course.course, tmp_path / "class")


def work(course, text="def double(n): return 2 * n") -> bytes:
    return tiny_course.as_bytes(tiny_course.answered(tiny_course.released(course), double=text))


def zip_of(path, **entries) -> str:
    """A zip of name -> bytes; a name may be a ZipInfo."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def answer(where, student: str) -> str:
    path = where.submitted / student / NAME / "tiny.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    return next(cell.source for cell in cells if cell.id == "double")


MOODLE = f"moodle {NAME}"


@pytest.mark.parametrize(
    ("path", "sender"),
    [
        ("lovelaceada_1234_56789_tiny.ipynb", Sender("lovelaceada-1234", "canvas", "1234")),
        ("lovelaceada_LATE_1234_5_my_work-2.ipynb", Sender("lovelaceada-1234", "canvas", "1234")),
        ("anon_x7Yz1_56789_tiny.ipynb", Sender("anon-x7Yz1", "canvas", "x7Yz1")),
        ("LATE_anon_x7Yz1_56789_tiny.ipynb", Sender("anon-x7Yz1", "canvas", "x7Yz1")),
        ("Ada L_12_assignsubmission_file_tiny.ipynb", Sender("Ada L", MOODLE, "12")),
        ("Ada L_12_assignsubmission_file/a.ipynb", Sender("Ada L", MOODLE, "12")),
        ("Group A-Zoë Ok_7_assignsubmission_file_/a.ipynb", Sender("Group A-Zoë Ok", MOODLE, "7")),
        ("Participant_7_assignsubmission_file_/a.ipynb", Sender("Participant 7", MOODLE, "7")),
        ("A-Participant_8_assignsubmission_file_/a", Sender("A-Participant 8", MOODLE, "8")),
        ("Ada L_12_assignsubmission_file_/deep/a.ipynb", Sender("Ada L", MOODLE, "12")),
        ("Jose\u0301 N_7_assignsubmission_file_/a", Sender("Jose\u0301 N", MOODLE, "7")),
        ("\u0301_7_assignsubmission_file_/a.ipynb", Sender("student-e98c79", MOODLE, "7")),
        ("अनिता शर्मा_7_assignsubmission_file_/a", Sender("अनिता शर्मा", MOODLE, "7")),
        ("=cmd()_12_assignsubmission_file_/a.ipynb", Sender("cmd()-110f07", MOODLE, "12")),
        ("zoe/ada_1234_56789_tiny.ipynb", Sender("zoe")),
        ("zoe/Ada L_12_assignsubmission_file_/a.ipynb", Sender("zoe")),
        ("ada/anything.ipynb", Sender("ada")),
        ("ada_tiny_final.ipynb", Sender("ada")),
        ("ada_hw_2_01_tiny.ipynb", Sender("ada")),
        ("ada_1234_56789_01_tiny.ipynb", Sender("ada-1234", "canvas", "1234")),
        ("ada.txt", None),
        ("-rf/tiny.ipynb", Sender("rf-686c39")),
        ("a[b]/tiny.ipynb", Sender("a-b-26974b")),
    ],
)
def test_a_name_says_who_it_is_from(path, sender):
    assert sender_of(PurePosixPath(path), NAME) == sender


def test_a_canvas_zip_gives_each_students_newest_attempt(course, where, tmp_path):
    path = zip_of(
        tmp_path / "submissions.zip",
        **{
            "lovelaceada_1234_100_tiny.ipynb": work(course, "first"),
            "lovelaceada_1234_300_tiny-1.ipynb": work(course, "second"),
            "lovelaceada_1234_400_helper.ipynb": b'{"cells": []}',
            "noetheremmy_LATE_77_200_tiny.ipynb": work(course, "late"),
            "noetheremmy_LATE_77_201_notes.pdf": b"%PDF",
            "goedelkurt_LATE_78_202_notes.pdf": b"%PDF",
            "syllabus.pdf": b"%PDF",
        },
    )
    found, left, late = collect(where, NAME, path)
    assert found == ["lovelaceada-1234", "noetheremmy-77"]
    assert late == ["goedelkurt-78", "noetheremmy-77"]
    assert answer(where, "lovelaceada-1234") == "second"
    no_notebook = f"goedelkurt_LATE_78_202_notes.pdf: {NO_NOTEBOOK}"
    assert left == [f"syllabus.pdf: {NOBODYS}", no_notebook]
    assert not (where.submitted / "lovelaceada-1234" / NAME / "timestamp.txt").exists()
    assert who_is_who(where)["canvas"]["1234"] == "lovelaceada-1234"


def test_a_moodle_zip_gives_folders_and_leaves_typed_text(course, where, tmp_path):
    path = zip_of(
        tmp_path / "moodle.zip",
        **{
            "Ada Lovelace_12_assignsubmission_file_/tiny.ipynb": work(course),
            "Ada Lovelace_12_assignsubmission_onlinetext_/onlinetext.html": b"<p>hello",
            "Emmy Noether_13_assignsubmission_file_tiny (1).ipynb.txt": work(course),
            "Kurt_14_assignsubmission_onlinetext_/onlinetext.html": b"<p>hello",
            "__MACOSX/._tiny.ipynb": b"x",
        },
    )
    found, left, _ = collect(where, NAME, path)
    assert found == ["Ada Lovelace", "Emmy Noether"]
    assert left == [f"Kurt_14_assignsubmission_onlinetext_: {NO_NOTEBOOK}"]
    people = {"12": "Ada Lovelace", "13": "Emmy Noether", "14": "Kurt"}
    assert who_is_who(where)[MOODLE] == people
    assert hand_ins(where, [NAME]) == [(name, NAME) for name in people.values()]
    _, standing, why = opened(where, "Kurt", NAME)
    assert standing == UNREADABLE
    assert "No notebook was found" in why


@pytest.fixture
def in_tokyo(monkeypatch):
    """This machine's clock, nine hours before UTC's: on one that shows UTC both are the same."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_moodles_worksheet_says_when_each_handed_in(course, where, tmp_path):
    names = [f"{name}_assignsubmission_file_/tiny.ipynb" for name in ("Ada_12", "Ben_13")]
    path = zip_of(tmp_path / "moodle.zip", **dict.fromkeys(names, work(course)))
    sheet = tmp_path / "sheet.csv"
    header = 'Identifier,"Last modified (submission)"\n'
    sheet.write_text(
        header + 'Participant 12,"Friday, 20 November 2026, 11:59 PM"\nParticipant 13,-\n'
    )
    collect(where, NAME, path, sheet)
    stamp = where.submitted / "Ada" / NAME / "timestamp.txt"
    assert stamp.read_text() == "2026-11-20 14:59:00 UTC\n"
    assert not (where.submitted / "Ben" / NAME / "timestamp.txt").exists()
    for other in ("vendredi 20 novembre", "03/02/26, 23:59"):
        sheet.write_text(f'{header}Participant 12,"{other}"\n')
        with pytest.raises(CourseError, match="Set Moodle to English"):
            collect(where, NAME, path, sheet)


@pytest.mark.parametrize("again", ["12 99", "99"])
def test_of_two_moodle_people_of_one_name_the_second_is_left_out(course, where, tmp_path, again):
    for number, numbers in enumerate(("12", again)):
        names = [f"Ada L_{one}_assignsubmission_file_/tiny.ipynb" for one in numbers.split()]
        path = zip_of(tmp_path / f"{number}.zip", **{one: work(course, one) for one in names})
        _, left, _ = collect(where, NAME, path)
    assert "Ada L_12_" in answer(where, "Ada L")
    assert left == [f"Ada L_99_assignsubmission_file_: {NAMESAKE.format('Ada L')}"]
    assert who_is_who(where)[MOODLE] == {"12": "Ada L"}


def test_a_folder_among_hand_ins_stops_nobody_elses(course, where, tmp_path):
    for text in ("old", "new"):
        for student in ("ada", "ben", "cem"):
            put(tmp_path / "inbox", f"{student}/tiny.ipynb", work(course, text))
        left = collect(where, NAME, tmp_path / "inbox")[1]
        put(where.submitted / "ada" / NAME, ".ipynb_checkpoints/tiny-checkpoint.ipynb", b"{}")
        if text == "old":
            (where.submitted / "ben" / NAME / "tiny.ipynb").unlink()
            (where.submitted / "ben" / NAME / "tiny.ipynb").mkdir()
    assert (answer(where, "ada"), answer(where, "cem")) == ("new", "new")
    assert [line.partition("[")[0] for line in left] == ["ben: "]


def test_a_disk_too_full_for_a_new_hand_in_leaves_the_old_one(course, where, tmp_path):
    put(tmp_path / "inbox", "ada/tiny.ipynb", work(course, "old"))
    collect(where, NAME, tmp_path / "inbox")
    put(tmp_path / "inbox", "ada/tiny.ipynb", work(course, "new"))
    with full_disk(1000), pytest.raises(OSError, match="too large"):
        collect(where, NAME, tmp_path / "inbox")
    assert answer(where, "ada") == "old"


def test_all_of_an_anonymous_moodle_zip_are_collected(course, where, tmp_path):
    names = [f"Participant_{one}_assignsubmission_file_/tiny.ipynb" for one in (12, 13)]
    path = zip_of(tmp_path / "moodle.zip", **dict.fromkeys(names, work(course)))
    assert collect(where, NAME, path) == (["Participant 12", "Participant 13"], [], [])
    assert who_is_who(where)[MOODLE] == {"12": "Participant 12", "13": "Participant 13"}


def test_a_download_in_a_folder_of_its_own_is_not_one_students(course, where, tmp_path):
    names = [f"Ada_{number}_assignsubmission_file_/tiny.ipynb" for number in (12, 13)]
    entries = {f"CS101-Tiny-4711/{name}": work(course) for name in names}
    path = zip_of(tmp_path / "again.zip", **entries)
    with pytest.raises(CourseError, match="one folder, CS101-Tiny-4711, and in it what 2 people"):
        collect(where, NAME, path)
    assert not where.submitted.exists()
    one = {name: data for name, data in entries.items() if "12" in name}
    assert collect(where, NAME, zip_of(path, **one))[0] == ["CS101-Tiny-4711"]


def test_a_number_stays_a_students_whatever_they_are_called_now(course, where, tmp_path):
    names = ("lovelaceada_12_5_tiny.ipynb", "kingada_12_6_tiny.ipynb", "kingada_99_7_tiny.ipynb")
    for name in names:
        collect(where, NAME, zip_of(tmp_path / "canvas.zip", **{name: work(course, name)}))
    assert answer(where, "lovelaceada-12") == names[1]
    assert sorted(path.name for path in where.submitted.iterdir()) == [
        "kingada-99",
        "lovelaceada-12",
    ]


def test_of_two_files_in_a_students_folder_the_newer_is_taken(course, where, tmp_path):
    place = tmp_path / "inbox" / "ada"
    place.mkdir(parents=True)
    for text, moment in (("new", 2_000_000_000), ("old", 1_000_000_000)):
        (place / f"tiny {text}.ipynb").write_bytes(work(course, text))
        os.utime(place / f"tiny {text}.ipynb", (moment, moment))
    collect(where, NAME, place.parent)
    assert answer(where, "ada") == "new"


def test_of_two_attempts_in_a_zip_the_newer_is_taken_also_beside_an_impossible_date(
    course, where, tmp_path
):
    """Browsers call the second file (1), which comes first by name; some zips hold no date."""
    days = {"tiny.ipynb": ("old", 2), "tiny (1).ipynb": ("new", 3), "tiny (2).ipynb": ("none", 0)}
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name, (text, day) in days.items():
            info = zipfile.ZipInfo(f"ada/{name}", (2026, 2, day, 12, 0, 0))
            archive.writestr(info, work(course, text))
    collect(where, NAME, tmp_path / "class.zip")
    assert answer(where, "ada") == "new"


@pytest.mark.parametrize("beside", ["tiny.ipynb - Colab.pdf", "tiny.ipynb:Zone.Identifier"])
def test_what_is_no_notebook_takes_the_place_of_none_however_new(course, where, tmp_path, beside):
    inbox = tmp_path / "inbox"
    attempts = {"ben/tiny.ipynb": "once", "ben/tiny.ipynb.txt": "again", "cem/my.ipynb": "own"}
    for moment, (name, text) in enumerate(attempts.items(), 1_000_000_000):
        put(inbox, name, work(course, text))
        os.utime(inbox / name, (moment, moment))
    for student in ("ben", "cem"):
        put(inbox, f"{student}/{beside}", b"%PDF-1.7")
    assert collect(where, NAME, inbox) == (["ben", "cem"], [], [])
    assert (answer(where, "ben"), answer(where, "cem")) == ("again", "own")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no zip", b"hello"])
def test_what_is_no_zip_is_answered_with_a_sentence(where, tmp_path, data):
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(CourseError, match="is not a folder and cannot be read as a zip"):
        collect(where, NAME, tmp_path / "x.zip")


def test_the_command_says_what_it_could_not_place(tmp_path):
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "readme.txt").write_text("x")
    (tmp_path / "inbox" / "link.ipynb").symlink_to("/etc/passwd")
    (tmp_path / "inbox" / "ranks.ipynb").write_text("nobody's: it has the assignment's name")
    arguments = ["collect", "01_ranks", str(tmp_path / "inbox"), "--class", str(tmp_path / "class")]
    result = CliRunner().invoke(cli.main, arguments)
    assert "collected 0 submissions" in result.output
    assert f"readme.txt: {NOBODYS}" in result.output
    assert "link.ipynb: it cannot be read (it is a link or a special file)" in result.output
    assert f"ranks.ipynb: {NOBODYS}" in result.output


# What a student packs and names


def put(folder, name: str, data: bytes) -> None:
    """A file of an inbox."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def test_nothing_is_written_outside_no_link_is_followed_and_bombs_are_refused(
    course, where, tmp_path
):
    names = ("../../out_1_2_tiny.ipynb", "/abs_3_2_tiny.ipynb", "..\\win_5_2_tiny.ipynb")
    link = zipfile.ZipInfo("lin_7_2_tiny.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = zip_of(tmp_path / "hostile.zip", **dict.fromkeys(names, work(course)))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("bom_9_2_tiny.ipynb", b" " * (MAX_BYTES + 1))
    found, left, _ = collect(where, NAME, path)
    assert sorted(found) == ["abs-3", "lin-7", "out-1", "win-5"]
    assert (where.submitted / "lin-7" / NAME / "tiny.ipynb").read_text() == "/etc/passwd"
    assert left == ["bom_9_2_tiny.ipynb: it is larger than 50 MB"]
    assert {p.name for p in tmp_path.iterdir()} == {"class", "hostile.zip"}
    assert {p.name for p in where.class_dir.iterdir()} == {"submitted", "students.json"}


def test_a_zip_that_lies_about_a_size_is_read_no_further(course, tmp_path):
    path = zip_of(tmp_path / "lie.zip", **{"ada_1_2_tiny.ipynb": b" " * (MAX_BYTES + 9)})
    data = bytearray(path.read_bytes())
    size = (MAX_BYTES + 9).to_bytes(4, "little")
    for at in [i for i in range(len(data)) if data[i : i + 4] == size]:
        data[at : at + 4] = (100).to_bytes(4, "little")
    path.write_bytes(data)
    (file,) = inbox.files(path)
    assert file.read()[0] is None or len(file.read()[0]) <= 100


def test_everything_in_an_inbox_is_on_a_list(course, where, tmp_path):
    others = ("ben/notes.pdf", "cem.txt", "dee/broken.ipynb", "eve/my.zip")
    for name, data in {"ada/tiny.ipynb": work(course), **dict.fromkeys(others, b"{")}.items():
        put(tmp_path / "inbox", name, data)
    (tmp_path / "inbox" / "fay.ipynb").symlink_to("/etc/passwd")
    found, left, _ = collect(where, NAME, tmp_path / "inbox")
    assert found == ["ada", "dee"]  # what is no notebook inside is graded as a blank one
    names = ["cem.txt", "ben", "eve", "fay.ipynb"]
    assert [line.partition(":")[0] for line in left] == names


@pytest.mark.parametrize(
    "name", ["ben_1_2_tiny.ipynb", "Ben_1_assignsubmission_file_/tiny.ipynb", "ben/tiny.ipynb"]
)
def test_what_a_student_calls_a_file_makes_nobody_elses_hand_in(course, where, tmp_path, name):
    for path, text in (("ben/tiny.ipynb", "ben's"), (f"zoe/{name}", "zoe's")):
        put(tmp_path / "inbox", path, work(course, text))
    assert collect(where, NAME, tmp_path / "inbox") == (["ben", "zoe"], [], [])
    assert (answer(where, "ben"), answer(where, "zoe")) == ("ben's", "zoe's")


@pytest.mark.parametrize("name", [".", "\\", "./"])
def test_an_entry_without_a_name_is_passed_over(course, where, tmp_path, name):
    entries = {"ada/tiny.ipynb": work(course), name: b"x"}
    path = zip_of(tmp_path / "class.zip", **entries)
    assert collect(where, NAME, path) == (["ada"], [], [])


def test_names_that_are_no_text_are_collected_and_told(course, where, tmp_path):
    for name in (b"J\xf6rg", b"J\xf6rg_12_assignsubmission_file_"):
        folder = os.path.join(os.fsencode(tmp_path / "inbox"), name)
        os.makedirs(folder)
        with open(os.path.join(folder, b"tiny.ipynb"), "wb") as file:
            file.write(work(course))
    student = "J-udcf6rg-4157e3"
    found, [left], _ = collect(where, NAME, tmp_path / "inbox")
    assert found == [student]
    assert NAMESAKE.format(student) in left


def test_who_is_who_that_a_hand_has_broken_is_a_sentence(where, tmp_path):
    where.class_dir.mkdir()
    where.students.write_text('{"canvas": ')
    with pytest.raises(CourseError, match=r"students\.json cannot be read: Expecting value"):
        collect(where, NAME, tmp_path)
