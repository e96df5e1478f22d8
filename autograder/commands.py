"""What every command of the command line shares: the group, --class, and errors as sentences."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from autograder.places import CourseError, places, why_not_written
from byhand.words import plain_text


@click.group()
@click.version_option(package_name="byhand", prog_name="autograder")
def main() -> None:
    """Release, grade and return the exercises; execute lectures.

    To see all of it on a made-up class: autograder demo.

    \b
    From release to marks:
      autograder release
      autograder collect 01_ranks inbox/
      autograder grade
      autograder feedback
      autograder export grades.csv
      autograder export filled.csv --assignment 01_ranks --fill canvas.csv

    Then report and similarity show the class, grade --again answers a request, and serve opens
    JupyterLab with the formgrader. Due dates, and what lateness costs, stand in the class
    directory's class.toml:

    \b
      [late]
      percent_per_day = 10
      [due]
      01_ranks = 2026-03-01T23:59:00+01:00
    """


A_PATH = click.Path(path_type=Path)
A_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
COUNT = click.IntRange(min=1)
course_option = click.option(
    "--course",
    type=A_PATH,
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
        type=A_PATH,
        metavar="DIR",
        help="The class directory (default: $CLASS, else build/class).",
    )
    @functools.wraps(function)
    @in_sentences
    def wrapped(course: Path | None, class_dir: Path | None, **options: Any) -> None:
        function(places(class_dir, course), **options)

    return wrapped


def in_sentences(function: Callable[..., None]) -> Callable[..., None]:
    """The function, its errors as sentences."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> None:
        try:
            function(*arguments, **options)
        except CourseError as error:
            raise click.ClickException(plain_text(error, None)) from None
        except BrokenPipeError:
            raise  # whoever read this has enough: click ends without a word
        except Exception as error:
            why = why_not_written(str(error))
            if not why and not isinstance(error, OSError):
                raise
            raise click.ClickException(why or f"{error}. What was graded so far is kept.") from None

    return wrapped


def told(failures: list[str]) -> str:
    """The first of many sentences about what went wrong, and how many more there are.

    They may quote a submission, and a terminal obeys what it is shown.
    """
    more = [f"and {len(failures) - 20} more"] if len(failures) > 20 else []
    return plain_text("\n".join([*failures[:20], *more]), None)


def options(*several: Callable[..., Any]) -> Callable[..., Any]:
    """Several of click's options as one decorator."""
    return lambda function: functools.reduce(lambda f, one: one(f), reversed(several), function)


assignments_argument = click.argument("assignments", nargs=-1, metavar="[ASSIGNMENT]...")
which_submissions = options(
    assignments_argument,
    click.option(
        "--student", "students", multiple=True, metavar="NAME", help="Only theirs; may be repeated."
    ),
)
