"""students.csv in the class directory: which person of an LMS is which student of the class.

`autograder collect` adds the rows it needs and changes none; a person may edit the file. Moodle
numbers a person anew in each assignment, so a Moodle row names its assignment; a Canvas row has
none. `autograder export` reads the numbers back from here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from autograder.collect.names import CANVAS, MOODLE, STUDENT, Sender, plain_name
from autograder.collect.tables import no_formula
from autograder.pages import write_page
from autograder.places import CourseError


@dataclass(frozen=True)
class Person:
    """One row."""

    student: str
    name: str
    lms: str
    number: str
    assignment: str = ""


class Roster:
    """The rows of students.csv, and new ones until `save`.

    Raises:
        CourseError: the file lacks a column, or a student's name is no folder's.
    """

    def __init__(self, path: Path):
        self.path = path
        self.people: list[Person] = list(_read(path))
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
            LookupError: two people have this name and no row tells them apart.
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
            rows = [",".join(map(_field, astuple(person))) for person in self.people]
            write_page(self.path, "\n".join([",".join(_COLUMNS), *rows]) + "\n")
            self._on_disk = len(self.people)

    def _new_name(self, sender: Sender, place: str) -> str:
        """A name for someone without a row, that no other person has."""
        name = plain_name(sender.name)[:_MAX_NAME] or f"{sender.lms}-{sender.number}"
        namesake = self._find(student=name, lms=sender.lms, assignment=place)
        if namesake and sender.lms == MOODLE:
            raise LookupError(
                f"another participant, {namesake.number}, is also called {sender.name}: give"
                f" both a row in {self.path.name}"
            )
        return f"{name}-{sender.number}" if namesake else name

    def _find(self, **wanted: str) -> Person | None:
        return next((person for person in self.people
                     if all(getattr(person, k) == v for k, v in wanted.items())), None)  # fmt: skip


_MAX_NAME = 50  # characters of a folder's name, which holds 255 bytes, a number included
_COLUMNS = [field.name for field in fields(Person)]


def _read(path: Path) -> Iterable[Person]:
    if not path.exists():
        return
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        missing = set(_COLUMNS) - set(reader.fieldnames or [])
        if missing:
            raise CourseError(f"{path} lacks the column {', '.join(sorted(missing))}; it has to"
                              f" begin with {','.join(_COLUMNS)}")  # fmt: skip
        for row in reader:
            if not STUDENT.fullmatch(row["student"] or ""):
                raise CourseError(f"{path}: {row['student']!r} cannot be the name of a student's"
                                  " folder")  # fmt: skip
            yield Person(*(row[name] or "" for name in _COLUMNS))


def _field(text: str) -> str:
    """A value of a CSV row, quoted where it must be. No name is a spreadsheet's formula."""
    text = str(no_formula(text))
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text
