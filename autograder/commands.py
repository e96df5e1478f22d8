"""What every command of the command line shares: the group, --class, and errors as sentences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from autograder.places import CourseError, places


@click.group()
def main() -> None:
    """Release, grade and return the exercises; execute lectures.

    \b
    From release to marks:
      autograder release
      autograder collect 01_ranks inbox/
      autograder grade
      autograder feedback
      autograder export grades.csv

    Then report and similarity show the class, regrade answers a request, and serve opens
    JupyterLab with the formgrader. Due dates and what lateness costs stand in the class
    directory's class.toml, who is who in Canvas or Moodle in its students.csv.
    """


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command on one class: --class, and errors as sentences."""

    @main.command()
    @click.option(
        "--class",
        "class_dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The class directory (default: $CLASS, else build/class).",
    )
    @functools.wraps(function)
    def wrapped(class_dir: Path | None, **options: Any) -> None:
        try:
            function(places(class_dir), **options)
        except CourseError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            raise click.ClickException(f"{error}. What was graded so far is kept.") from None

    return wrapped


assignments_argument = click.argument("assignments", nargs=-1, metavar="[ASSIGNMENT]...")
student_option = click.option(
    "--student",
    "students",
    multiple=True,
    metavar="NAME",
    help="Only this student; may be repeated.",
)
