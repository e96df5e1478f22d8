"""Commands for what comes after grading: feedback, regrades, the class page, CSV."""

import importlib.util
from pathlib import Path
from typing import Any

import click

from autograder.commands import (
    A_FILE,
    A_PATH,
    assignments_argument,
    command,
    how_to_judge,
    told,
    which_submissions,
)
from autograder.places import CourseError, Places, chosen_assignments
from byhand.words import counted

to_option = click.option(
    "--to",
    "path",
    type=A_PATH,
    metavar="FILE",
    help="Where to write the page (default: in the class directory).",
)


@command
@which_submissions
def feedback(where: Places, assignments: tuple[str, ...], students: tuple[str, ...]) -> None:
    """Write a page for each student: verdicts, messages, and their code."""
    from autograder.report.feedback import write_feedback

    pages = write_feedback(where, chosen_assignments(where, assignments), list(students))
    if not pages:
        raise CourseError("there is nothing to return yet: run autograder grade first")
    click.echo(f"{counted(len(pages), 'page')} in {where.feedback}")


@command
@which_submissions
@click.option("--reason", default="", help="The request, in words; kept with the answer.")
@how_to_judge
def regrade(
    where: Places,
    assignments: tuple[str, ...],
    students: tuple[str, ...],
    reason: str,
    **how: Any,
) -> None:
    """Judge again, and say task by task what changed and why; kept in regrades.csv."""
    from autograder.batch.grading import Options
    from autograder.report.regrade import regrade as regrading

    names = chosen_assignments(where, assignments)
    made, failures = regrading(where, names, list(students), Options(**how), reason)
    for one in made:
        click.echo(str(one))
    changed = sum(one.old_score != one.new_score for one in made)
    click.echo(f"{len(made)} graded again, {changed} with another score")
    if failures:
        raise click.ClickException(told(failures))


@command
@to_option
def report(where: Places, path: Path | None) -> None:
    """Write the class page: distributions, hardest tasks, every verdict."""
    from autograder.report.class_page import write_report

    click.echo(write_report(where, path or where.class_dir / "grades.html"))


@command
@assignments_argument
@click.option(
    "--ring",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    metavar="N",
    help="What more than N share counts as the task's own.",
)
@to_option
def similarity(where: Places, assignments: tuple[str, ...], ring: int, path: Path | None) -> None:
    """Write a page of the submissions that are most alike, side by side."""
    from autograder.report.similarity import write_similarity

    names = chosen_assignments(where, assignments)
    click.echo(write_similarity(where, names, path or where.class_dir / "similarity.html", ring))


@command
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option(
    "--form",
    type=click.Choice(["plain", "canvas", "moodle"]),
    default="plain",
    help="Whose CSV it is (default: plain, a row for each submission).",
)
@click.option(
    "--assignment",
    "assignments",
    multiple=True,
    metavar="NAME",
    help="Only this assignment; may be repeated.",
)
@click.option(
    "--fill",
    type=A_FILE,
    metavar="FILE",
    help="Fill in this file, exported by the LMS.",
)
@click.option("--column", default="", metavar="TITLE", help="The assignment's column in FILE.")
def export(
    where: Places,
    path: Path | None,
    form: str,
    assignments: tuple[str, ...],
    fill: Path | None,
    column: str,
) -> None:
    """Write the grades as CSV, to a file or to the terminal."""
    from autograder.report import export as exporting

    names = chosen_assignments(where, assignments)
    sheet = getattr(exporting, form)(where, names, fill, column)
    if path is None:
        click.echo(sheet.text(), nl=False)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sheet.text(), encoding="utf-8", errors="replace")
        click.echo(f"{counted(len(sheet.rows), 'row')} in {path}")
    for sentence in sheet.left:
        click.echo(f"  {sentence}", err=True)


@command
@click.option("--port", default=8888, show_default=True, help="The next free one from here on.")
@click.option("--browser/--no-browser", default=True, help="Whether to open a browser.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- JUPYTER_OPTION]...")
def serve(where: Places, port: int, browser: bool, options: tuple[str, ...]) -> None:
    """Start JupyterLab on a copy of the course to work in, with the formgrader on the class."""
    from autograder import serve as serving

    for sentence in serving.lay_out(where):
        click.echo(sentence)
    click.echo(f"Yours to work in, and ignored by git: {where.work}")
    click.echo(f"Class: {where.class_dir}")
    if importlib.util.find_spec("nbgrader"):
        click.echo("Formgrader: the menu Nbgrader in JupyterLab, or /formgrader in the address.")
    serving.serve(where, port, browser, options)
