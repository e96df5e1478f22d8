"""The command line: one command for each step between an exercise and a mark."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from autograder.places import CourseError, Places, chosen_assignments, places
from autograder.run_command import run


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
    """


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command on one class: --class, and errors as sentences."""

    @main.command()
    @click.option("--class", "class_dir", type=click.Path(path_type=Path), metavar="DIR",
                  help="The class directory (default: $CLASS, else build/class).")  # fmt: skip
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
student_option = click.option("--student", "students", multiple=True, metavar="NAME",
                              help="Only this student; may be repeated.")  # fmt: skip


@command
@assignments_argument
def release(where: Places, assignments: tuple[str, ...]) -> None:
    """Write exercises/ from solutions/, without solutions and hidden tests."""
    from autograder import release as releasing

    names = chosen_assignments(where, assignments)
    for path in releasing.release(where, names):
        click.echo(f"released {path.relative_to(where.course)}")
    for name in names:
        releasing.register(where, name)


@command
@click.argument("assignment")
@click.argument("inbox", type=click.Path(path_type=Path))
def collect(where: Places, assignment: str, inbox: Path) -> None:
    """Copy submissions from a folder or zip of downloads into the class.

    Knows the names that Canvas and Moodle give to what they pack; otherwise INBOX holds a folder
    for each student, or files called STUDENT_anything.ipynb. Who is who is kept in students.csv.
    """
    from autograder.collect import collect as collecting

    [name] = chosen_assignments(where, [assignment])
    done = collecting(where, name, inbox)
    click.echo(f"collected {len(done.students)} submissions for {name} into {where.submitted}")
    if done.attempts:
        click.echo(f"  {done.attempts} earlier attempts gave way to newer ones")
    if done.late:
        click.echo(
            f"  marked late by Canvas, which does not say by how much: {', '.join(done.late)}"
        )
    for sentence in done.left:
        click.echo(f"  left out {sentence}")


@command
@assignments_argument
@student_option
@click.option("--again", is_flag=True, help="Judge again what was judged before.")
@click.option("--unsandboxed", is_flag=True, help="Run submissions without walls: own work only.")
@click.option("--seed", type=int, help="Of the random inputs (default: fixed by the tests).")
@click.option("--limit", type=click.FloatRange(min=1), metavar="SECONDS",
              help="Most seconds for one test cell (default: its own limit, else 30).")  # fmt: skip
def grade(
    where: Places,
    assignments: tuple[str, ...],
    students: tuple[str, ...],
    again: bool,
    unsandboxed: bool,
    seed: int | None,
    limit: float | None,
) -> None:
    """Judge what is new or changed, and record the scores in nbgrader's gradebook."""
    from autograder.grade import Options
    from autograder.grade import grade as grading

    names = chosen_assignments(where, assignments)
    options = Options(again, not unsandboxed, seed, limit, sys.stderr.isatty())
    try:
        outcome = grading(where, names, list(students), options)
    except KeyboardInterrupt:
        raise click.ClickException(
            "interrupted. What was graded is kept; the same command goes on from there."
        ) from None
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in outcome.counts.most_common())
    click.echo(
        f"{len(outcome.judgements)} submissions, {outcome.new} of them judged now: {verdicts}"
    )
    if outcome.failures:
        raise click.ClickException("\n".join(outcome.failures[:20]))


@command
@assignments_argument
@student_option
def feedback(where: Places, assignments: tuple[str, ...], students: tuple[str, ...]) -> None:
    """Write a page for each student: verdicts, messages, and their code."""
    from autograder.feedback import write_feedback

    pages = write_feedback(where, chosen_assignments(where, assignments), list(students))
    if not pages:
        raise CourseError("there is nothing to return yet: run autograder grade first")
    click.echo(f"{len(pages)} pages in {where.feedback}")


@command
@click.option("--to", "path", type=click.Path(path_type=Path), metavar="FILE",
              help="Where to write it (default: grades.html in the class directory).")  # fmt: skip
def report(where: Places, path: Path | None) -> None:
    """Write the class page: distributions, hardest tasks, every verdict."""
    from autograder.report import write_report

    click.echo(write_report(where, path or where.class_dir / "grades.html"))


@command
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), required=False)
def export(where: Places, path: Path | None) -> None:
    """Write the grades as CSV, to a file or to the terminal."""
    from autograder import export as exporting

    if path is None:
        exporting.export(where, sys.stdout)
    else:
        click.echo(f"{exporting.export_file(where, path)} rows in {path}")


main.add_command(run)
