"""Where a course and a class keep their files. No other module spells these paths."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent  # or what else this package was installed in
COURSES = "lectures/*.ipynb", "solutions/*/*.ipynb"
RECORD = ".written.json"  # what was last written to a folder: see written.py
_PLAIN = re.compile(r"[\w ./@~:,=-]+")


LOCKED = ("database is locked",)
_KEPT = " What was graded so far is kept."
NO_ROOM = ("disk is full", "disk I/O error", "o space left", "quota exceeded", "File too large")
DAMAGED = "file is not a database", "disk image is malformed"


class CourseError(Exception):
    """Something a person can put right; the message is a whole sentence that says how."""


class GradebookError(CourseError):
    """The gradebook cannot be read or written now, whatever for."""


def why_not_written(said: str) -> str:
    """What to do about an error of the disk or the gradebook, by its words; "" for any other."""
    if any(words in said for words in LOCKED):
        return "another program is using the gradebook: try again when it is done." + _KEPT
    if any(words in said for words in NO_ROOM):
        return "there is no room on the disk: make some, and give the same command again." + _KEPT
    if any(words in said for words in DAMAGED):
        return (
            "the gradebook is damaged: put a copy of gradebook.db that you kept in its place, or"
            " delete it; then run autograder grade. What was graded is in the journal; marks and"
            " comments that people gave are in the gradebook alone."
        )
    return ""


class Places:
    """A course directory (solutions, exercises) and a class directory (everything about people)."""

    def __init__(self, course: Path, class_dir: Path):
        self.course, self.class_dir = course, class_dir
        self.solutions = course / "solutions"  # what instructors write
        self.exercises = course / "exercises"  # what students get
        self.work = course / "work"  # a student's own copy of both, which git ignores
        self.submitted = class_dir / "submitted"  # STUDENT/ASSIGNMENT/STEM.ipynb, as it was sent
        self.autograded = class_dir / "autograded"  # rebuilt notebooks with their verdicts
        self.feedback = class_dir / "feedback"  # STUDENT/ASSIGNMENT/STEM.html
        self.gradebook = class_dir / "gradebook.db"  # nbgrader's database
        self.journal = class_dir / "grading.journal"  # every judgement ever made for this class
        self.students = class_dir / "students.json"  # who is who in Canvas or Moodle

    def source(self, assignment: str) -> Path:
        """The source notebook of an assignment.

        Raises:
            CourseError: there is none, or there are several.
        """
        folder = self.solutions / assignment
        found = sorted(folder.glob("*.ipynb"))
        if len(found) != 1:
            raise CourseError(f"{folder} must hold one notebook, and holds {len(found)}")
        return found[0]

    def released(self, assignment: str) -> Path:
        """The released notebook of an assignment."""
        return self.exercises / assignment / self.source(assignment).name

    def assignments(self) -> list[str]:
        """Names of all assignments, in reading order."""
        return sorted(path.parent.name for path in self.solutions.glob("*/*.ipynb"))


def is_course(path: Path) -> bool:
    """Whether lectures or solutions stand there, and it is no student's copy of a course."""
    holds = (found for kind in COURSES for found in path.glob(kind))
    return any(holds) and not (path / RECORD).exists()


def course_directory(chosen: str | Path | None = None) -> Path:
    """`chosen` or $COURSE; without them the current directory, else the one this package is in.

    Raises:
        CourseError: there are neither lectures nor solutions.
    """
    named = chosen or os.environ.get("COURSE")
    tried = [Path(named).expanduser()] if named else [Path.cwd(), COURSE]
    for path in map(Path, map(os.path.abspath, tried)):
        if is_course(path):
            return path
    raise CourseError(
        f"{tried[0]} is no course: it holds neither lectures/*.ipynb nor solutions/*/*.ipynb. Go to"
        " the course's directory, or name it with --course DIR"
    )


def places(class_dir: str | Path | None = None, course: str | Path | None = None) -> Places:
    """Places of a class: `class_dir`, else $CLASS, else build/class in the course.

    Raises:
        CourseError: there is no such course, or nbgrader could not work with a path of this name.
    """
    course = course_directory(course)
    chosen = Path(class_dir or os.environ.get("CLASS") or course / "build" / "class")
    chosen = Path(os.path.abspath(chosen.expanduser()))
    for path in (chosen, course):
        if not _PLAIN.fullmatch(str(path)):
            raise CourseError(
                f"nbgrader reads paths as patterns and cannot work in {str(path)!r}: use a path"
                " of letters, digits, spaces and . _ - @ ~ : , ="
            )
    if chosen.exists() and not chosen.is_dir():
        raise CourseError(f"{chosen} is a file, and a class is a folder: name another with --class")
    return Places(course, chosen)


def chosen_assignments(where: Places, names: Iterable[str]) -> list[str]:
    """The assignments named (all of them for no names), checked against solutions/.

    Raises:
        CourseError: there is no such assignment.
    """
    known = where.assignments()
    wanted = list(dict.fromkeys(Path(name.rstrip("/")).name for name in names)) or known
    unknown = [name for name in wanted if name not in known]
    if not known:
        raise CourseError(f"there are no source notebooks in {where.solutions}")
    if unknown:
        raise CourseError(f"no assignment {', '.join(unknown)}; there are {', '.join(known)}")
    return wanted
