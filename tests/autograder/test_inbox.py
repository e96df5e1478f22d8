"""Collect: nothing that a student packs or names leads outside, or takes another one's place."""

import io
import os
import stat
import tracemalloc
import zipfile

import pytest
import tiny_course
from test_collect import NAME, answer, work, zip_of

from autograder.collect import inbox
from autograder.collect.hand_ins import collect
from autograder.collect.roster import Roster
from autograder.collect.uploads import MAX_BYTES
from autograder.places import CourseError, Places


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return tiny_course.make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def where(course, tmp_path):
    return Places(course.course, tmp_path / "class")


def hostile_zip(course, path):
    link = zipfile.ZipInfo("lin_1_2_tiny.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return zip_of(
        path,
        **{
            "../../out_10_2_tiny.ipynb": work(course),
            "/abs_11_2_tiny.ipynb": work(course),
            "..\\win_12_2_tiny.ipynb": work(course),
            "C:/drive_13_2_tiny.ipynb": work(course),
            "bom_14_2_tiny.ipynb": b" " * (MAX_BYTES + 1),
            "okay_7_8_tiny.ipynb": work(course),
        },
    ), link


def test_paths_that_leave_the_zip_links_and_bombs_are_refused(course, where, tmp_path):
    path, link = hostile_zip(course, tmp_path / "hostile.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    before = {p for p in tmp_path.rglob("*") if where.class_dir not in p.parents}
    done = collect(where, NAME, path)
    assert done.students == ["okay"]
    reasons = " | ".join(done.left)
    assert reasons.count("leads outside") == 4
    assert "it is a link" in reasons
    assert "it is larger than 200 MB" in reasons
    after = {p for p in tmp_path.rglob("*") if where.class_dir not in p.parents}
    assert after - before <= {where.class_dir}


def test_a_zip_that_lies_about_a_size_is_read_no_further(course, tmp_path):
    path = zip_of(tmp_path / "lie.zip", **{"ada_1_2_tiny.ipynb": b" " * (MAX_BYTES + 9)})
    data = bytearray(path.read_bytes())
    size = (MAX_BYTES + 9).to_bytes(4, "little")
    for at in [i for i in range(len(data)) if data[i : i + 4] == size]:
        data[at : at + 4] = (100).to_bytes(4, "little")
    path.write_bytes(data)
    (file,) = inbox.files(path)
    assert file.read()[0] is None or len(file.read()[0]) <= 100


def put(folder, name: str, data: bytes) -> None:
    """A file of an inbox."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def test_everything_in_an_inbox_is_on_a_list(course, where, tmp_path):
    others = ("ben/notes.pdf", "cem.txt", "dee/broken.ipynb", "eve/my.zip")
    for name, data in {"ada/tiny.ipynb": work(course), **dict.fromkeys(others, b"{")}.items():
        put(tmp_path / "inbox", name, data)
    (tmp_path / "inbox" / "fay").symlink_to("/etc")
    done = collect(where, NAME, tmp_path / "inbox")
    assert done.students == ["ada", "dee"]  # what cannot be read is graded as a blank one
    assert [line.partition(":")[0] for line in done.left] == ["cem.txt", "fay", "ben", "eve"]


def test_a_folder_around_a_canvas_download_is_no_student(course, where, tmp_path):
    for name in ("ada_1_2_x.ipynb", "ben_3_4_x.ipynb"):
        put(tmp_path / "inbox", f"submissions/{name}", work(course))
    assert collect(where, NAME, tmp_path / "inbox").students == ["ada", "ben"]


@pytest.mark.parametrize(
    "name", ["ben_1_2_tiny.ipynb", "Ben_1_assignsubmission_file_/tiny.ipynb", "ben/tiny.ipynb"]
)
def test_what_a_student_calls_a_file_makes_nobody_elses_hand_in(course, where, tmp_path, name):
    for path, text in (("ben/tiny.ipynb", "ben's"), (f"zoe/{name}", "zoe's")):
        put(tmp_path / "inbox", path, work(course, text))
    done = collect(where, NAME, tmp_path / "inbox")
    assert (done.students, done.left) == (["ben", "zoe"], [])
    assert (answer(where, "ben"), answer(where, "zoe")) == ("ben's", "zoe's")


def test_the_only_folder_of_an_inbox_is_a_student_where_one_has_its_name(course, where, tmp_path):
    (where.submitted / "zoe").mkdir(parents=True)
    for path in ("zoe/tiny.ipynb", "zoe/ben_1_2_tiny.ipynb", "zoe/eve_3_4_tiny.ipynb"):
        put(tmp_path / "inbox", path, work(course))
    assert collect(where, NAME, tmp_path / "inbox").students == ["zoe"]


def test_a_student_found_under_two_names_is_collected_once_and_told(course, where, tmp_path):
    for path, text in (("ben/tiny.ipynb", "first"), ("ben_1_2_tiny.ipynb", "second")):
        put(tmp_path / "inbox", path, work(course, text))
    done = collect(where, NAME, tmp_path / "inbox")
    assert (done.students, answer(where, "ben")) == (["ben"], "first")
    assert done.left == ["ben_1_2_tiny.ipynb: ben's work was already found under another name"]


def newer_version(data: bytearray) -> None:
    data[data.index(b"PK\1\2") + 6] = 99


def bad_property(data: bytearray) -> None:
    data[30 + len("tiny.ipynb") + 4] = 255


@pytest.mark.parametrize("spoil", [newer_version, bad_property])
def test_a_students_broken_zip_is_told_and_the_class_goes_on(course, where, tmp_path, spoil):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("tiny.ipynb", work(course))
    data = bytearray(packed.getvalue())
    spoil(data)
    put(tmp_path / "inbox", "ada/tiny.ipynb", work(course))
    put(tmp_path / "inbox", "eve/my.zip", bytes(data))
    done = collect(where, NAME, tmp_path / "inbox")
    assert done.students == ["ada"]
    assert done.left[0].startswith("eve: ")


def test_a_class_zip_that_cannot_be_read_is_answered_with_a_sentence(course, tmp_path):
    path = zip_of(tmp_path / "class.zip", **{"ada/tiny.ipynb": work(course)})
    data = bytearray(path.read_bytes())
    newer_version(data)
    path.write_bytes(data)
    with pytest.raises(CourseError, match=r"cannot be read as a zip: zip file version 9\.9"):
        inbox.files(path)


@pytest.mark.parametrize("name", [".", "\\", "./"])
def test_an_entry_without_a_name_is_passed_over(course, where, tmp_path, name):
    entries = {"ada/tiny.ipynb": work(course), name: b"x"}
    path = zip_of(tmp_path / "class.zip", **entries)
    assert collect(where, NAME, path).students == ["ada"]


def test_of_many_files_only_the_best_is_held(course, where, tmp_path):
    big = b'{"cells": [], "x": "' + b" " * 9_000_000 + b'"}'
    packed = io.BytesIO()
    zip_of(packed, **{f"{number}.ipynb": big for number in range(10)})
    for number in range(2):  # 20 notebooks, 180 MB
        put(tmp_path / "inbox", f"eve/{number}.zip", packed.getvalue())
    tracemalloc.start()
    collect(where, NAME, tmp_path / "inbox")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 90_000_000


def test_names_that_are_no_text_are_collected_and_told(course, where, tmp_path):
    for name in (b"J\xf6rg", b"J\xf6rg_12_assignsubmission_file_"):
        folder = os.path.join(os.fsencode(tmp_path / "inbox"), name)
        os.makedirs(folder)
        with open(os.path.join(folder, b"tiny.ipynb"), "wb") as file:
            file.write(work(course))
    done = collect(where, NAME, tmp_path / "inbox")
    assert done.students == ["J-udcf6rg-4157e3", "j-udcf6rg"]
    assert done.left == []


def test_a_moodle_name_is_no_formula_in_the_roster_and_no_too_long_folder(course, where, tmp_path):
    names = ("=cmd()", "李" * 200)
    entries = {
        f"{name}_{number}_assignsubmission_file_/tiny.ipynb": work(course)
        for number, name in enumerate(names)
    }
    done = collect(where, NAME, zip_of(tmp_path / "moodle.zip", **entries))
    assert sorted(done.students) == ["cmd", "李" * 50]
    assert Roster(where.class_dir / "students.csv").name("cmd") == "'=cmd()"
