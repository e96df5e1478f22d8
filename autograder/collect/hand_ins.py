"""From a folder or zip of downloads to submitted/STUDENT/ASSIGNMENT/STEM.ipynb.

Knows what Canvas and Moodle call the files they pack (see `names`), and a folder or file for each
student. A notebook is copied as bytes; what it is, is told at once. Of several attempts the newest
wins; among files handed in together, the one that holds the released cells.

nbgrader's own zip_collect is not used: it follows links, unpacks a file of any size, and stops the
whole class at a second attempt, a broken zip or a pipe.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from autograder.collect.door import HandIn, hand_in, names_of
from autograder.collect.inbox import files, opened, unwrapped, wrapper
from autograder.collect.names import MOODLE, PLAIN, Sender, sender_of, student_name
from autograder.collect.roster import Roster
from autograder.collect.tables import hand_in_times
from autograder.collect.uploads import (
    NO_NOTEBOOK,
    Choice,
    File,
    choose,
    likely_first,
    read_file,
)
from autograder.pages import write_page
from autograder.places import CourseError, Places
from byhand.words import counted

LONG_AGO = datetime.min.replace(tzinfo=UTC)
LATE = "LATE"  # a file beside a notebook that Canvas marks late
_FORMAT = "%Y-%m-%d %H:%M:%S UTC"
_ABOUT_LATE = """Canvas marked this hand-in late, and does not say by how much: one day is taken.
If it was more, write when it came into a file timestamp.txt here: 2026-03-01 23:59:00 UTC
"""


@dataclass
class Collected:
    """What became of an inbox: students whose work was copied, and sentences about the rest.

    `found` says of each what the notebook is; `left` has a sentence for each thing that could not
    be placed; `late`, students whom Canvas marks late (its downloads do not say by how much);
    `attempts`, files that a newer one replaced.
    """

    found: dict[str, HandIn] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    attempts: int = 0

    @property
    def students(self) -> list[str]:
        """Whose work was copied."""
        return list(self.found)

    def sentences(self) -> Iterator[str]:
        """How many notebooks of each kind there are, and what else there is to say."""
        if kinds := Counter(one.standing or "with work in them" for one in self.found.values()):
            yield ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        if self.attempts:
            yield f"{counted(self.attempts, 'earlier attempt')} gave way to newer ones"
        if self.late:
            yield (
                f"marked late by Canvas, which does not say by how much: {', '.join(self.late)};"
                " one day is taken, unless timestamp.txt says more"
            )
        for student, one in self.found.items():
            if one.standing:
                yield f"{one.standing}: {student}. {one.why}".strip()
        yield from (f"left out {sentence}" for sentence in self.left)


def collect(
    where: Places, assignment: str, inbox: Path, worksheet: Path | None = None
) -> Collected:
    """Copy an inbox into submitted/; a student's earlier hand-in is replaced by a newer one.

    `worksheet` is Moodle's grading worksheet, which knows when each participant handed in.

    Raises:
        CourseError: the inbox is neither a folder nor a zip, or a CSV file lacks columns.
    """
    done, roster = Collected(), Roster(where.students)
    times = hand_in_times(worksheet) if worksheet else {}
    stem, known = where.source(assignment).stem, names_of(where, assignment)
    by_sender: dict[tuple[str, str], list[File]] = defaultdict(list)
    for file in _inbox(where, inbox, done):
        sender = sender_of(file.path)
        if sender is None or sender == Sender(PLAIN, stem) or not sender.notebook:
            done.left.append(f"{file.path}: {_why_nobodys(file, sender)}")
        else:
            by_sender[sender.key].append(_dated(file, sender, times))
    try:
        for sent in by_sender.values():
            sent = likely_first(sent, stem)
            files = (inner for file in sent for inner in likely_first(opened(file), stem))
            try:
                _hand_in(where, assignment, choose(files, stem, known), roster, done)
            except (CourseError, FileExistsError, NotADirectoryError, PermissionError) as why:
                done.left.append(f"{sent[0].path.parts[0]}: {why}")
    finally:
        roster.save()
    return done


def _inbox(where: Places, inbox: Path, done: Collected) -> list[File]:
    """An inbox's files, seen from inside the folder around all students', if there is one."""
    found = files(inbox)
    around = wrapper(found)
    if not around or (where.submitted / student_name(around)).exists():
        return found
    done.left.append(f"{around}: it was taken for a folder around all students', not for one's own")
    return unwrapped(found)


def _dated(file: File, sender: Sender, times: dict[str, datetime]) -> File:
    """The file with when it was handed in, where that is known: an LMS packs no file's own time."""
    modified = {PLAIN: file.modified, MOODLE: times.get(sender.number)}.get(sender.lms)
    return replace(file, modified=modified, newness=(sender.order, modified or LONG_AGO))


def _why_nobodys(file: File, sender: Sender | None) -> str:
    if sender is not None and not sender.notebook:
        return "it is text typed into Moodle, not a notebook"
    if file.path.suffix.lower() == ".ipynb":
        return "no student's name can be made of its name"
    return f"it {file.read()[1] or NO_NOTEBOOK}"


def _hand_in(
    where: Places, assignment: str, chosen: Choice, roster: Roster, done: Collected
) -> None:
    """One person's notebook becomes the hand-in, unless the one that is there is newer.

    Raises:
        CourseError: it does not; the message says why.
    """
    if chosen.file is None:
        whys = [f"it {why}" for _, why in chosen.problems]
        raise CourseError(whys[0] if whys else "there is no notebook in it")
    sender, modified = sender_of(chosen.file.path), chosen.file.modified
    student = roster.student(sender, assignment)
    if student in done.students:
        raise CourseError(f"{student}'s work was already found under another name")
    folder = where.submitted / student / assignment
    if folder.parent.is_symlink() or folder.is_symlink():
        raise CourseError(f"{folder} is a link, and links are never followed: remove it")
    before = _moment(folder / "timestamp.txt")
    if modified and before and before > modified.replace(microsecond=0):
        raise CourseError("what was collected before is newer")
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.ipynb"), folder / "timestamp.txt", folder / LATE]:
        old.unlink(missing_ok=True)
    (folder / where.source(assignment).name).write_bytes(chosen.data)
    if modified:
        write_page(folder / "timestamp.txt", f"{modified:{_FORMAT}}\n")
    if sender.late:
        write_page(folder / LATE, _ABOUT_LATE)
        done.late.append(student)
    done.found[student] = hand_in(where, assignment, chosen, [])
    done.attempts += max(0, chosen.attempts - 1)


def is_late(where: Places, student: str, assignment: str) -> bool:
    """Whether Canvas marked a hand-in late, and nobody knows when it came."""
    folder = where.submitted / student / assignment
    return (folder / LATE).exists() and not (folder / "timestamp.txt").exists()


def _moment(path: Path) -> datetime | None:
    data, _ = read_file(path, limit=100)
    try:
        return datetime.strptime((data or b"").decode().strip(), _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
