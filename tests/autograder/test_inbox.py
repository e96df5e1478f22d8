"""Collect: nothing that a student packs or names leads outside, or takes another one's place."""

import io
import os
import stat
import zipfile

import pytest
import tiny_course
from test_collect import NAME, answer, work, zip_of

from autograder.collect import inbox
from autograder.collect.hand_ins import collect
from autograder.collect.names import student_name
from autograder.collect.uploads import MAX_BYTES
from autograder.places import CourseError, Places


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return tiny_course.make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def where(course, tmp_path):
    return Places(course.course, tmp_path / "class")


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
    done = collect(where, NAME, path)
    standings = {student: one.standing for student, one in done.found.items()}
    assert standings == {"out": "", "abs": "", "win": "", "lin": "unreadable"}
    assert done.left == ["bom_9_2_tiny.ipynb: it is larger than 50 MB"]
    assert {p.name for p in tmp_path.iterdir()} == {"class", "hostile.zip"}
    assert {p.name for p in where.class_dir.iterdir()} == {"submitted", "students.csv"}


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
    done = collect(where, NAME, tmp_path / "inbox")
    assert list(done.found) == ["ada", "dee"]  # what cannot be read is graded as a blank one
    left = ["cem.txt", "ben", "eve", "fay.ipynb"]
    assert [line.partition(":")[0] for line in done.left] == left


@pytest.mark.parametrize(
    "name", ["ben_1_2_tiny.ipynb", "Ben_1_assignsubmission_file_/tiny.ipynb", "ben/tiny.ipynb"]
)
def test_what_a_student_calls_a_file_makes_nobody_elses_hand_in(course, where, tmp_path, name):
    for path, text in (("ben/tiny.ipynb", "ben's"), (f"zoe/{name}", "zoe's")):
        put(tmp_path / "inbox", path, work(course, text))
    done = collect(where, NAME, tmp_path / "inbox")
    assert (list(done.found), done.left) == (["ben", "zoe"], [])
    assert (answer(where, "ben"), answer(where, "zoe")) == ("ben's", "zoe's")


def test_a_student_found_under_two_names_is_collected_once_and_told(course, where, tmp_path):
    for path, text in (("ben_1_2_tiny.ipynb", "first"), ("ben/tiny.ipynb", "second")):
        put(tmp_path / "inbox", path, work(course, text))
    done = collect(where, NAME, tmp_path / "inbox")
    assert (list(done.found), answer(where, "ben")) == (["ben"], "first")
    assert done.left == ["ben: ben's work was already found under another name"]


def newer_version(data: bytearray) -> bytearray:
    data[data.index(b"PK\1\2") + 6] = 99
    return data


def test_a_students_zip_is_read_in_steps_or_not_and_the_class_goes_on(course, where, tmp_path):
    """A bomb packed by LZMA unfolds at once, whatever part of it one asks for."""
    packed, broken = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("tiny.ipynb", b" " * 1_000_000)
    zip_of(broken, **{"tiny.ipynb": work(course)})
    put(tmp_path / "inbox", "ada/tiny.ipynb", work(course))
    put(tmp_path / "inbox", "eve/my.zip", packed.getvalue())
    put(tmp_path / "inbox", "fay/my.zip", newer_version(bytearray(broken.getvalue())))
    done = collect(where, NAME, tmp_path / "inbox")
    assert list(done.found) == ["ada"]
    assert done.left == [
        "eve: it is packed in a way that cannot be read in steps",
        "fay: it is no notebook, nor a zip that holds one",
    ]


def test_a_class_zip_that_cannot_be_read_is_answered_with_a_sentence(course, tmp_path):
    path = zip_of(tmp_path / "class.zip", **{"ada/tiny.ipynb": work(course)})
    path.write_bytes(newer_version(bytearray(path.read_bytes())))
    with pytest.raises(CourseError, match=r"cannot be read as a zip: zip file version 9\.9"):
        inbox.files(path)


@pytest.mark.parametrize("name", [".", "\\", "./"])
def test_an_entry_without_a_name_is_passed_over(course, where, tmp_path, name):
    entries = {"ada/tiny.ipynb": work(course), name: b"x"}
    path = zip_of(tmp_path / "class.zip", **entries)
    assert list(collect(where, NAME, path).found) == ["ada"]


def test_names_that_are_no_text_are_collected_and_told(course, where, tmp_path):
    for name in (b"J\xf6rg", b"J\xf6rg_12_assignsubmission_file_"):
        folder = os.path.join(os.fsencode(tmp_path / "inbox"), name)
        os.makedirs(folder)
        with open(os.path.join(folder, b"tiny.ipynb"), "wb") as file:
            file.write(work(course))
    done = collect(where, NAME, tmp_path / "inbox")
    assert list(done.found) == ["J-udcf6rg-4157e3"]
    assert "already found under another name" in done.left[0]


def test_a_moodle_name_is_no_formula_in_the_roster_and_no_too_long_folder(course, where, tmp_path):
    names = ("=cmd()", "李" * 200)
    entries = [
        f"{name}_{number}_assignsubmission_file_/a.ipynb" for number, name in enumerate(names)
    ]
    path = zip_of(tmp_path / "moodle.zip", **dict.fromkeys(entries, work(course)))
    assert list(collect(where, NAME, path).found) == list(map(student_name, names))
    assert ",'=cmd(),moodle,0," in where.students.read_text()
