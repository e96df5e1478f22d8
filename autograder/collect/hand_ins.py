"""From a folder or zip of downloads to submitted/STUDENT/ASSIGNMENT/STEM.ipynb.

Knows what Canvas and Moodle call the files they pack (see `lms_names`), and a folder or file for
each student. A notebook is copied as bytes, and what it is shows when it is graded. Of several
attempts the newest wins; among files handed in together, the one that holds the released cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import nbformat

from autograder.collect.inbox import File, files, unwrapped, wrapper, zipped
from autograder.collect.names import CANVAS, MOODLE, PLAIN, Sender, sender_of
from autograder.collect.roster import Roster
from autograder.collect.tables import hand_in_times
from autograder.collect.uploads import SUFFIXES, found_notebook, read_file
from autograder.pages import write_page
from autograder.places import Places

MAX_NOTEBOOKS_IN_ZIP = 10
_FORMAT = "%Y-%m-%d %H:%M:%S UTC"


@dataclass
class Collected:
    """What became of an inbox: students whose work was copied, and sentences about the rest.

    `left` has one for each thing that could not be placed; `late`, students whom Canvas marks
    late (its downloads do not say by how much); `attempts`, files that a newer one replaced.
    """

    students: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    attempts: int = 0


@dataclass(frozen=True)
class _Candidate:
    """A notebook that may be a student's answer."""

    file: File
    sender: Sender
    data: bytes
    num_known: int
    num_cells: int
    right_name: bool

    @property
    def rank(self) -> tuple:
        """Grows with what makes it the answer."""
        moment = self.file.modified or datetime.min.replace(tzinfo=UTC)
        return (self.num_known > 0, self.num_cells > 0, self.sender.order, moment,
                self.right_name, self.num_known)  # fmt: skip


def collect(where: Places, assignment: str, inbox: Path,
            worksheet: Path | None = None) -> Collected:  # fmt: skip
    """Copy an inbox into submitted/; a student's earlier hand-in is replaced by a newer one.

    `worksheet` is Moodle's grading worksheet, which knows when each participant handed in.

    Raises:
        CourseError: the inbox is neither a folder nor a zip, or a CSV file lacks columns.
    """
    done, roster = Collected(), Roster(where.class_dir / "students.csv")
    times = hand_in_times(worksheet) if worksheet else {}
    by_sender: dict[tuple[str, str], list[tuple[Sender, File]]] = defaultdict(list)
    for file in _inbox(where, inbox, done):
        sender = sender_of(file.path)
        nameless = sender == Sender(PLAIN, where.source(assignment).stem)
        if sender is None or nameless or not sender.notebook:
            done.left.append(f"{file.path}: {_why_nobodys(file, sender)}")
        else:
            moment = times.get(sender.number) if sender.lms == MOODLE else file.modified
            by_sender[sender.key].append((sender, replace(file, modified=moment)))
    for sent in by_sender.values():
        _collect_one(where, assignment, sent, roster, done)
    roster.save()
    return done


def _inbox(where: Places, inbox: Path, done: Collected) -> list[File]:
    """An inbox's files, seen from inside the folder around all students', if there is one."""
    found = files(inbox)
    around = wrapper(found)
    if not around or (where.submitted / around).exists():
        return found
    done.left.append(f"{around}: it was taken for a folder around all students', not for one's own")
    return unwrapped(found)


def _collect_one(where: Places, assignment: str, sent: list[tuple[Sender, File]], roster: Roster,
                 done: Collected) -> None:  # fmt: skip
    """One person's files: the best of them becomes the hand-in."""
    best, num_attempts, problems = _best(where, assignment, sent)
    who = sent[0][1].path.parts[0]
    if best is None:
        done.left.append(f"{who}: {problems[0] if problems else 'there is no notebook in it'}")
        return
    try:
        student = roster.student(best.sender, assignment)
    except LookupError as error:
        done.left.append(f"{who}: {error.args[0]}")
        return
    if student in done.students:
        done.left.append(f"{who}: {student}'s work was already found under another name")
        return
    if not _place(where.submitted / student / assignment, where.source(assignment).stem, best):
        done.left.append(f"{who}: what was collected before is newer")
        return
    done.students.append(student)
    done.late += [student] if best.sender.late else []
    done.attempts += max(0, num_attempts - 1)


def _best(where: Places, assignment: str, sent: list[tuple[Sender, File]],
          ) -> tuple[_Candidate | None, int, list[str]]:  # fmt: skip
    """The notebook that is a person's answer, how many hold released cells, and what is wrong.

    Holds the bytes of two notebooks at most, however many there are.
    """
    stem, released = where.source(assignment).stem, where.released(assignment)
    known = _names(released) if released.exists() else set()
    best, num_attempts, problems = None, 0, []
    for sender, file in sent:
        for inner, data, why_not in _contents(file):
            if data is None:
                problems.append(why_not)
                continue
            cells, _ = found_notebook(data)
            if cells or inner.path.suffix == ".ipynb":
                hits = len({cell.grade_id for cell in cells} & known)
                right = inner.path.name.endswith(f"{stem}.ipynb")
                one = _Candidate(file, sender, data, hits, len(cells), right)
                num_attempts += hits > 0
                best = one if best is None or one.rank > best.rank else best
    return best, num_attempts, problems


def _contents(file: File) -> Iterator[tuple[File, bytes | None, str]]:
    """The file itself, or what lies in it if it is a zip; only what may be a notebook is read."""
    suffix = file.path.suffix.lower()
    if suffix not in (*SUFFIXES, ".zip"):
        why_not = file.read()[1] if not suffix else "it is neither a folder nor a notebook"
        yield file, None, why_not or "it is neither a folder nor a notebook"
        return
    data, why_not = file.read()
    if data is None or suffix != ".zip":
        yield file, data, why_not
        return
    inside = [f for f in zipped(data, file.path) if f.path.suffix.lower() in SUFFIXES]
    for inner in inside[:MAX_NOTEBOOKS_IN_ZIP]:
        yield inner, *inner.read()
    if not inside:
        yield file, None, "no notebook can be read from its zip"


def _why_nobodys(file: File, sender: Sender | None) -> str:
    if sender is not None and not sender.notebook:
        return "it is text typed into Moodle, not a notebook"
    if file.path.suffix.lower() != ".ipynb":
        return file.read()[1] or "it is neither a folder nor a notebook"
    return "no student's name can be made of its name"


def _place(folder: Path, stem: str, chosen: _Candidate) -> bool:
    """Write the hand-in, unless the one that is there is newer; whether it was written.

    What an LMS packs carries the time of the download: only a plain file's own time counts, and
    what Moodle's worksheet says.
    """
    moment = chosen.file.modified if chosen.sender.lms != CANVAS else None
    before = _moment(folder / "timestamp.txt")
    if moment and before and before > moment.replace(microsecond=0):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.ipynb"), folder / "timestamp.txt"]:
        old.unlink(missing_ok=True)
    (folder / f"{stem}.ipynb").write_bytes(chosen.data)
    if moment:
        write_page(folder / "timestamp.txt", f"{moment:{_FORMAT}}\n")
    return True


def _moment(path: Path) -> datetime | None:
    data, _ = read_file(path, limit=100)
    try:
        return datetime.strptime((data or b"").decode().strip(), _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def _names(released: Path) -> set[str]:
    cells = nbformat.read(released, as_version=4).cells
    return {cell.metadata.get("nbgrader", {}).get("grade_id", cell.id) for cell in cells}
