"""Collect: what Canvas, Moodle and plain folders pack, told apart."""

import io
import os
import time
import zipfile
from pathlib import PurePosixPath

import nbformat
import pytest
import tiny_course
from click.testing import CliRunner

from autograder import cli
from autograder.collect.hand_ins import NOBODYS, collect
from autograder.collect.names import Sender, sender_of
from autograder.collect.roster import Roster
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


@pytest.mark.parametrize(
    ("path", "sender"),
    [
        ("lovelaceada_1234_56789_tiny.ipynb", Sender("canvas", "lovelaceada", "1234", 56789)),
        (
            "lovelaceada_LATE_1234_56789_my_work-2.ipynb",
            Sender("canvas", "lovelaceada", "1234", 56789, late=True),
        ),
        ("anon_x7Yz1_56789_tiny.ipynb", Sender("canvas", "anon", "x7Yz1", 56789)),
        (
            "Ada Lovelace_12_assignsubmission_file_tiny.ipynb",
            Sender("moodle", "Ada Lovelace", "12"),
        ),
        ("Ada Lovelace_12_assignsubmission_file/a.ipynb", Sender("moodle", "Ada Lovelace", "12")),
        (
            "Group A-Zoë Ok_7_assignsubmission_file_/a.ipynb",
            Sender("moodle", "Group A-Zoë Ok", "7"),
        ),
        ("Ada L_12_assignsubmission_file_/deep/a.ipynb", Sender("moodle", "Ada L", "12")),
        ("zoe/ada_1234_56789_tiny.ipynb", Sender("plain", "zoe")),
        ("zoe/Ada L_12_assignsubmission_file_/a.ipynb", Sender("plain", "zoe")),
        ("ada/anything.ipynb", Sender("plain", "ada")),
        ("ada_tiny_final.ipynb", Sender("plain", "ada")),
        ("ada.txt", None),
        ("-rf/tiny.ipynb", Sender("plain", "rf-686c39")),
        ("a[b]/tiny.ipynb", Sender("plain", "a-b-26974b")),
    ],
)
def test_a_name_says_who_it_is_from(path, sender):
    assert sender_of(PurePosixPath(path)) == sender


def test_a_canvas_zip_gives_each_students_newest_attempt(course, where, tmp_path):
    path = zip_of(
        tmp_path / "submissions.zip",
        **{
            "lovelaceada_1234_100_tiny.ipynb": work(course, "first"),
            "lovelaceada_1234_300_tiny-1.ipynb": work(course, "second"),
            "lovelaceada_1234_400_helper.ipynb": b'{"cells": []}',
            "noetheremmy_LATE_77_200_tiny.ipynb": work(course, "late"),
            "noetheremmy_LATE_77_201_notes.pdf": b"%PDF",
            "syllabus.pdf": b"%PDF",
        },
    )
    done = collect(where, NAME, path)
    assert list(done.found) == ["lovelaceada", "noetheremmy"]
    assert answer(where, "lovelaceada") == "second"
    assert "which does not say by how much: noetheremmy." in " ".join(done.sentences())
    assert done.left == [f"syllabus.pdf: {NOBODYS}"]
    assert not (where.submitted / "lovelaceada" / NAME / "timestamp.txt").exists()
    assert Roster(where.students).students("canvas", NAME)["1234"] == "lovelaceada"


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
    done = collect(where, NAME, path)
    assert list(done.found) == ["Ada Lovelace", "Emmy Noether"]
    assert done.left == [
        "Kurt_14_assignsubmission_onlinetext_: it is no notebook, nor a zip that holds one"
    ]
    assert Roster(where.students).students("moodle", NAME)["12"] == "Ada Lovelace"


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
    sheet.write_text(header + 'Participant 12,"Friday, 20 November 2026, 11:59 PM"\n13,-\n')
    collect(where, NAME, path, sheet)
    stamp = where.submitted / "Ada" / NAME / "timestamp.txt"
    assert stamp.read_text() == "2026-11-20 14:59:00 UTC\n"
    assert not (where.submitted / "Ben" / NAME / "timestamp.txt").exists()
    for other in ("vendredi 20 novembre", "03/02/26, 23:59"):
        sheet.write_text(f'{header}12,"{other}"\n')
        with pytest.raises(CourseError, match="Set Moodle to English"):
            collect(where, NAME, path, sheet)


def test_two_moodle_people_of_one_name_wait_for_a_row_each(course, where, tmp_path):
    names = [f"Ada Lovelace_{number}_assignsubmission_file_/tiny.ipynb" for number in (12, 99)]
    path = zip_of(tmp_path / "moodle.zip", **dict.fromkeys(names, work(course)))
    done = collect(where, NAME, path)
    assert list(done.found) == ["Ada Lovelace"]
    assert "another participant is also called Ada Lovelace" in done.left[0]
    with open(where.class_dir / "students.csv", "a") as file:
        file.write(f"ada-of-99,Ada Lovelace,moodle,99,{NAME}\n")
    assert list(collect(where, NAME, path).found) == ["Ada Lovelace", "ada-of-99"]


def test_canvas_namesakes_are_told_apart_by_their_number(course, where, tmp_path):
    names = [f"lovelaceada_{number}_5_tiny.ipynb" for number in (12, 99)]
    path = zip_of(tmp_path / "canvas.zip", **dict.fromkeys(names, work(course)))
    assert list(collect(where, NAME, path).found) == ["lovelaceada", "lovelaceada-99"]


def test_a_zip_that_a_student_handed_in_is_looked_into_once(course, where, tmp_path):
    inner = io.BytesIO()
    zip_of(inner, **{"a/tiny.ipynb": work(course, "zipped"), "../evil.ipynb": work(course, "evil")})
    nested = io.BytesIO()
    zip_of(nested, **{"inner.zip": inner.getvalue()})
    path = zip_of(
        tmp_path / "canvas.zip",
        **{"ada_1_2_my.zip": inner.getvalue(), "ben_3_4_my.zip": nested.getvalue()},
    )
    done = collect(where, NAME, path)
    assert (list(done.found), answer(where, "ada")) == (["ada"], "zipped")
    assert done.left == ["ben_3_4_my.zip: it is no notebook, nor a zip that holds one"]


def test_of_two_files_in_a_students_folder_the_newer_is_taken_and_says_when_it_came(
    course, where, tmp_path
):
    place = tmp_path / "inbox" / "ada"
    place.mkdir(parents=True)
    for text, moment in (("new", 2_000_000_000), ("old", 1_000_000_000)):
        (place / f"tiny {text}.ipynb").write_bytes(work(course, text))
        os.utime(place / f"tiny {text}.ipynb", (moment, moment))
    collect(where, NAME, place.parent)
    assert answer(where, "ada") == "new"
    stamp = where.submitted / "ada" / NAME / "timestamp.txt"
    assert stamp.read_text() == "2033-05-18 03:33:20 UTC\n"


def test_a_notebook_without_a_name_is_nobodys(course, where, tmp_path):
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "tiny.ipynb").write_bytes(work(course))
    assert collect(where, NAME, tmp_path / "inbox").left == [f"tiny.ipynb: {NOBODYS}"]


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no zip", b"hello"])
def test_what_is_no_zip_is_answered_with_a_sentence(where, tmp_path, data):
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(CourseError, match=r"not a folder and not a zip|cannot be read as a zip"):
        collect(where, NAME, tmp_path / "x.zip")


def test_the_command_says_what_it_could_not_place(tmp_path):
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "readme.txt").write_text("x")
    (tmp_path / "inbox" / "link.ipynb").symlink_to("/etc/passwd")
    arguments = ["collect", "01_ranks", str(tmp_path / "inbox"), "--class", str(tmp_path / "class")]
    result = CliRunner().invoke(cli.main, arguments)
    assert "collected 0 submissions" in result.output
    assert f"readme.txt: {NOBODYS}" in result.output
    assert "link.ipynb: it is a link" in result.output
