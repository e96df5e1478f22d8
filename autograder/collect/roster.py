"""students.csv in the class directory: which person of an LMS is which student of the class.

`autograder collect` adds the rows it needs and changes none; a person may edit the file. Moodle
numbers a person anew in each assignment, so a Moodle row names its assignment; a Canvas row has
none. `autograder export` reads the numbers back from here.
"""

from pathlib import Path

from autograder.collect.names import MOODLE, PLAIN, Sender, student_name
from autograder.collect.tables import Table, no_formulas, read_table
from autograder.pages import write_page
from autograder.places import CourseError

COLUMNS = ["student", "name", "lms", "number", "assignment"]


class Roster:
    """The rows of students.csv, and new ones until `save`.

    Raises:
        CourseError: the file lacks a column, or a student's name is no folder's.
    """

    def __init__(self, path: Path):
        what = f"roster, which begins with {','.join(COLUMNS)}"
        self.path = path
        self.rows = read_table(path, COLUMNS, what).rows if path.exists() else []
        for name in (row["student"] for row in self.rows):
            if student_name(name) != name:
                raise CourseError(f"{path}: {name!r} cannot be the name of a student's folder")

    def students(self, lms: str, assignment: str) -> dict[str, str]:
        """The students that an LMS knows, by their number in this assignment."""
        place = (lms, assignment if lms == MOODLE else "")
        rows = [row for row in self.rows if (row["lms"], row["assignment"]) == place]
        return {row["number"]: row["student"] for row in rows}

    def student(self, sender: Sender, assignment: str) -> str:
        """The student that a sender is; a new row where they were never seen.

        Raises:
            CourseError: two people have this name and no row tells them apart.
        """
        if sender.lms == PLAIN:
            return sender.name
        known, name = self.students(sender.lms, assignment), student_name(sender.name)
        if sender.number in known:
            return known[sender.number]
        if name in known.values() and sender.lms == MOODLE:
            raise CourseError(
                f"another participant is also called {sender.name}: give both a row in"
                f" {self.path.name}, this one with the number {sender.number}"
            )
        if name in known.values():
            name = student_name(f"{name}-{sender.number}")
        place = assignment if sender.lms == MOODLE else ""
        values = name, sender.name, sender.lms, sender.number, place
        self.rows.append(no_formulas(dict(zip(COLUMNS, values, strict=True))))
        return name

    def save(self) -> None:
        """Write the file, where there is anybody to write down."""
        if self.rows:
            write_page(self.path, Table(COLUMNS, self.rows).text())
