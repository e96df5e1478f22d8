"""What every command of the command line shares: the group, --class, and errors as sentences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from autograder.places import CourseError, places

NO_NBGRADER = "this needs nbgrader, which is not installed: pip install 'byhand[instructor]'"


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


course_option = click.option(
    "--course",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The course directory (default: $COURSE, else the current one, else this checkout).",
)


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command on one class: --course, --class, and errors as sentences."""

    @main.command()
    @course_option
    @click.option(
        "--class",
        "class_dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The class directory (default: $CLASS, else build/class).",
    )
    @functools.wraps(function)
    def wrapped(course: Path | None, class_dir: Path | None, **options: Any) -> None:
        try:
            function(places(class_dir, course), **options)
        except CourseError as error:
            raise click.ClickException(str(error)) from None
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "nbgrader":
                raise
            raise click.ClickException(NO_NBGRADER) from None
        except BrokenPipeError:
            raise  # whoever read this has enough: click ends without a word
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
