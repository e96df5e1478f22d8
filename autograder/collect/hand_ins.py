"""From a folder or zip of downloads to submitted/STUDENT/ASSIGNMENT/STEM.ipynb.

Knows what Canvas and Moodle call the files they pack (see `names`), and a folder or file for each
student. A notebook is copied as bytes; what it is, is told at once. Of several attempts the newest
wins, and what is collected replaces what was collected before.

nbgrader's own zip_collect is not used: it follows links, unpacks a file of any size, and stops the
whole class at a second attempt, a broken zip or a pipe.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from autograder.collect.door import HandIn, opened
from autograder.collect.inbox import files, unzipped
from autograder.collect.names import MOODLE, PLAIN, Sender, sender_of
from autograder.collect.roster import Roster
from autograder.collect.tables import hand_in_times
from autograder.collect.uploads import File, notebook_of
from autograder.pages import write_page
from autograder.places import CourseError, Places

NOBODYS = "it is neither a student's folder nor a notebook with a student's name"
LATE = (
    "late, says Canvas, which does not say by how much: {}. Let its late policy take points off, or"
    " write when each came into timestamp.txt beside the notebook: 2026-03-01 23:59:00 UTC"
)


@dataclass
class Collected:
    """What became of an inbox: students whose work was copied, and what their notebook is.

    `left` has a sentence for each thing that could not be placed; `late`, students whom Canvas
    marks late.
    """

    found: dict[str, HandIn] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def sentences(self) -> Iterator[str]:
        """How many notebooks of each kind there are, and what else there is to say."""
        if kinds := Counter(one.standing or "with work in them" for one in self.found.values()):
            yield ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        if self.late:
            yield LATE.format(", ".join(self.late))
        for student, one in self.found.items():
            if one.standing:
                yield f"{one.standing}: {student}. {one.why}".strip()
        yield from (f"left out {sentence}" for sentence in self.left)


def collect(
    where: Places, assignment: str, inbox: Path, worksheet: Path | None = None
) -> Collected:
    """Copy an inbox into submitted/; what a student handed in before is replaced.

    `worksheet` is Moodle's grading worksheet, which knows when each participant handed in.

    Raises:
        CourseError: the inbox is neither a folder nor a zip, or a CSV file lacks columns.
    """
    done, roster, stem = Collected(), Roster(where.students), where.source(assignment).stem
    times = hand_in_times(worksheet) if worksheet else {}
    sent: dict[tuple[str, str], list[File]] = defaultdict(list)
    for file in files(inbox):
        sender = sender_of(file.path)
        if sender is None or sender == Sender(PLAIN, stem):
            done.left.append(f"{file.path}: {NOBODYS}")
        else:
            who = sender.lms, sender.number or sender.name
            sent[who].append(replace(file, newness=sender.order or file.newness))
    for _, theirs in sorted(sent.items()):
        file = notebook_of(theirs, stem) or notebook_of(unzipped(theirs), stem)
        sender = sender_of((file or theirs[0]).path)
        try:
            student = roster.student(sender, assignment)
            if student in done.found:
                raise CourseError(f"{student}'s work was already found under another name")
            came = {PLAIN: file and file.newness, MOODLE: times.get(sender.number)}.get(sender.lms)
            _copy(file, where.submitted / student / assignment, stem, came)
        except (CourseError, FileExistsError, NotADirectoryError, PermissionError) as why:
            done.left.append(f"{theirs[0].path.parts[0]}: {why}")
            continue
        done.found[student] = opened(where, student, assignment)
        done.late += [student] * sender.late
    roster.save()
    return done


def _copy(file: File | None, folder: Path, stem: str, came: float | None) -> None:
    """One person's notebook becomes the hand-in, with when it came, where that is known.

    Raises:
        CourseError: it does not; the message says why.
    """
    data, why = file.read() if file else (None, "is no notebook, nor a zip that holds one")
    if data is None:
        raise CourseError(f"it {why}")
    if folder.parent.is_symlink() or folder.is_symlink():
        raise CourseError(f"{folder} is a link, and links are never followed: remove it")
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.ipynb*"), folder / "timestamp.txt"]:
        old.unlink(missing_ok=True)
    (folder / f"{stem}.ipynb").write_bytes(data)
    if came:
        when = datetime.fromtimestamp(came, UTC)
        write_page(folder / "timestamp.txt", f"{when:%Y-%m-%d %H:%M:%S} UTC\n")
