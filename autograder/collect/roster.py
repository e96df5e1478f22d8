"""students.csv in the class directory: which person of an LMS is which student of the class.

`autograder collect` adds the rows it needs and changes none; a person may edit the file. Moodle
numbers a person anew in each assignment, so a Moodle row names its assignment; a Canvas row has
none. `autograder export` reads the numbers back from here.
"""

from dataclasses import dataclass, fields
from pathlib import Path

from autograder.collect.names import CANVAS, MOODLE, Sender, plain_name, student_name
from autograder.collect.tables import Table, no_formulas, read_table
from autograder.pages import write_page
from autograder.places import CourseError

MAX_NAME = 50  # characters of a folder's name, which holds 255 bytes, a number included


@dataclass(frozen=True)
class Person:
    """One row."""

    student: str
    name: str
    lms: str
    number: str
    assignment: str = ""


COLUMNS = [field.name for field in fields(Person)]


class Roster:
    """The rows of students.csv, and new ones until `save`.

    Raises:
        CourseError: the file lacks a column, or a student's name is no folder's.
    """

    def __init__(self, path: Path):
        self.path = path
        self.people = _read(path) if path.exists() else []
        self._on_disk = len(self.people)

    def number(self, student: str, lms: str, assignment: str = "") -> str:
        """What an LMS calls a student; empty when that is not known."""
        person = self._find(student=student, lms=lms, assignment=assignment)
        return person.number if person else ""

    def name(self, student: str) -> str:
        """A student's full name, else what the class calls them."""
        return next((p.name for p in self.people if p.student == student and p.name), student)

    def student(self, sender: Sender, assignment: str) -> str:
        """The student that a sender is; a new row where they were never seen.

        Raises:
            CourseError: two people have this name and no row tells them apart.
        """
        if sender.lms not in (CANVAS, MOODLE):
            return sender.name
        place = assignment if sender.lms == MOODLE else ""
        known = self._find(lms=sender.lms, number=sender.number, assignment=place)
        if known:
            return known.student
        student = self._new_name(sender, place)
        self.people.append(Person(student, sender.name, sender.lms, sender.number, place))
        return student

    def save(self) -> None:
        """Write the file, if rows were added."""
        if len(self.people) > self._on_disk:
            rows = [no_formulas(vars(person)) for person in self.people]
            write_page(self.path, Table(COLUMNS, rows).text())
            self._on_disk = len(self.people)

    def _new_name(self, sender: Sender, place: str) -> str:
        """A name for someone without a row, that no other person has."""
        name = plain_name(sender.name)[:MAX_NAME] or f"{sender.lms}-{sender.number}"
        namesake = self._find(student=name, lms=sender.lms, assignment=place)
        if namesake and sender.lms == MOODLE:
            raise CourseError(
                f"another participant, {namesake.number}, is also called {sender.name}: give both a"
                f" row in {self.path.name}"
            )
        return f"{name}-{sender.number}" if namesake else name

    def _find(self, **wanted: str) -> Person | None:
        matches = (p for p in self.people if all(getattr(p, k) == v for k, v in wanted.items()))
        return next(matches, None)


def _read(path: Path) -> list[Person]:
    rows = read_table(path, COLUMNS, f"roster, which begins with {','.join(COLUMNS)}").rows
    people = [Person(*(row[name] for name in COLUMNS)) for row in rows]
    for person in people:
        if student_name(person.student) != person.student:
            raise CourseError(
                f"{path}: {person.student!r} cannot be the name of a student's folder"
            )
    return people
