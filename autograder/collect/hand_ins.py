"""From a folder or zip of downloads to submitted/STUDENT/ASSIGNMENT/STEM.ipynb.

Knows what Canvas and Moodle call the files they pack (see `names`), and a folder or file for each
student. A notebook is copied as bytes. Of several attempts the newest wins, and what is collected
replaces what was collected before. Whoever Canvas or Moodle names, and who sent no notebook that
can be read, has a folder without one, and so stays on every list of the class.

nbgrader's own zip_collect is not used: it follows links, unpacks a file of any size, and stops the
whole class at a second attempt, a broken zip or a pipe.
"""

import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from autograder.collect.inbox import files
from autograder.collect.names import MOODLE, Sender, sender_of
from autograder.collect.tables import hand_in_times
from autograder.collect.uploads import File, notebook_of
from autograder.pages import write_page
from autograder.places import CourseError, Places

NAMES = "names"
IN_THE_WAY = FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError
NOBODYS = "it is neither a student's folder nor a notebook with a student's name"
NO_NOTEBOOK = "there is no .ipynb file. If a zip holds it, unpack it into a folder of its name"
LATE = (
    "marked LATE by Canvas, which does not say by how much: {}. No points are taken off for that"
    " here: let Canvas's late policy do so, or write when it came into its timestamp.txt"
)
NAMESAKE = (
    "there is work by another {} already: put this one's into a folder of another name, and collect"
    " that"
)


def collect(
    where: Places, assignment: str, inbox: Path, worksheet: Path | None = None
) -> tuple[list[str], list[str], list[str]]:
    """Copy an inbox into submitted/: whose work was, a sentence for each thing that was not, and
    whose work Canvas calls late.

    `worksheet` is Moodle's grading worksheet, which knows when each participant handed in.

    Raises:
        CourseError: the inbox is neither a folder nor a zip, or holds a whole download in one
            folder; or the worksheet is none.
    """
    stem, times = where.source(assignment).stem, hand_in_times(worksheet) if worksheet else {}
    sent: dict[Sender, list[File]] = defaultdict(list)
    found, left, late, everyone = [], [], [], who_is_who(where)
    for file in _not_in_one_folder(files(inbox), assignment):
        sender = sender_of(file.path, assignment)
        if sender is None or sender == Sender(stem):
            left.append(f"{file.path}: {NOBODYS}")
        else:
            sent[sender].append(replace(file, newness=sender.order or file.newness))
    for sender, theirs in sent.items():
        known = everyone.setdefault(sender.lms, {}) if sender.lms else {}
        student = known.get(sender.number, sender.name)
        try:
            is_new = sender.number not in known
            if student in found or (is_new and student in known.values()):
                raise CourseError(NAMESAKE.format(student))
            folder, notebook = where.submitted / student / assignment, notebook_of(theirs, stem)
            known[sender.number] = student
            of_it = sender_of((notebook or theirs[0]).path, assignment)
            if of_it and of_it.late:
                late.append(student)  # whether or not the file is a notebook
            _copy(notebook, folder, stem, times.get(sender.number), is_person=bool(sender.lms))
            found.append(student)
        except (CourseError, *IN_THE_WAY) as why:
            left.append(f"{theirs[0].path.parts[0]}: {why}")
    if everyone:
        write_page(where.students, json.dumps(everyone, indent=1))
    return found, left, late


def _not_in_one_folder(found: list[File], assignment: str) -> list[File]:
    """The same files, unless all lie in one folder that Moodle's download was unpacked to.

    What is deeper tells nobody's name, as that one student chose it. So it is not looked into, but
    that folder would be taken for one student, and all others be lost.

    Raises:
        CourseError: they do.
    """
    inside = [PurePosixPath(*one.path.parts[1:]) for one in found if len(one.path.parts) > 1]
    of_moodle = f"{MOODLE} {assignment}"
    senders = {sender_of(path, assignment) for path in inside}
    people = [one for one in senders if one and one.lms == of_moodle]
    folders = {one.path.parts[0]: sender_of(one.path, assignment) for one in found}
    is_moodles = any(one and one.lms == of_moodle for one in folders.values())
    if len(folders) == 1 < len(people) and not is_moodles:
        raise CourseError(
            f"everything lies in one folder, {min(folders)}, and in it what {len(people)} people"
            " sent: give that folder, unpacked, or a zip of what is in it"
        )
    return found


def who_is_who(where: Places) -> dict[str, dict[str, str]]:
    """Which student has which number, by LMS, and below NAMES who is called what: all that Canvas
    and Moodle told so far.

    Raises:
        CourseError: the file is not JSON any more.
    """
    try:
        return json.loads(where.students.read_text()) if where.students.exists() else {}
    except ValueError as error:
        raise CourseError(f"{where.students} cannot be read: {error}") from None


def learn_names(where: Places, names: dict[str, str]) -> None:
    """Keep what people are called, by student, for the formgrader."""
    everyone = who_is_who(where)
    if {**everyone.get(NAMES, {}), **names} != everyone.get(NAMES, {}):
        everyone.setdefault(NAMES, {}).update(names)
        write_page(where.students, json.dumps(everyone, indent=1))


def _copy(file: File | None, folder: Path, stem: str, came: float | None, is_person: bool) -> None:
    """One person's notebook becomes the hand-in, with when it came, where that is known.

    Where there is none, a person has an empty folder; what is none, perhaps, has nothing.

    Raises:
        CourseError: it does not; the message says why.
    """
    data, why = file.read() if file else (None, NO_NOTEBOOK)
    if folder.parent.is_symlink() or folder.is_symlink():
        raise CourseError(f"{folder} is a link, and links are never followed: remove it")
    if data is not None or is_person:
        folder.mkdir(parents=True, exist_ok=True)
    if data is None:
        raise CourseError(why)
    new, stamp = write_page(folder / f"{stem}.ipynb", data), folder / "timestamp.txt"
    for old in [*folder.glob("*.ipynb*"), stamp]:
        if old != new and not old.is_dir():  # JupyterLab leaves .ipynb_checkpoints
            old.unlink(missing_ok=True)
    if came:
        write_page(stamp, f"{datetime.fromtimestamp(came, UTC):%Y-%m-%d %H:%M:%S} UTC\n")
