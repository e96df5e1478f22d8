"""Commands for what comes after grading: feedback, the class page, CSV, the formgrader; the lab;
the demo of it all."""

import importlib.util
import os
import shutil
from pathlib import Path

import click

from autograder.commands import (
    A_FILE,
    A_PATH,
    assignments_argument,
    command,
    course_option,
    in_sentences,
    main,
    told,
    which_submissions,
)
from autograder.places import CourseError, Places, chosen_assignments, course_directory
from byhand.words import counted


@command
@which_submissions
@click.option(
    "--moodle",
    type=A_PATH,
    metavar="ZIP",
    help="The zip that Moodle gave: also pack the pages for it, in the folders that it had.",
)
def feedback(
    where: Places, assignments: tuple[str, ...], students: tuple[str, ...], moodle: Path | None
) -> None:
    """Write a page for each student: verdicts, messages, and their code."""
    from autograder.report.feedback import for_moodle, moodle_folders, write_feedback

    names = chosen_assignments(where, assignments)
    if moodle and len(names) != 1:
        raise CourseError("a zip of Moodle's is of one assignment: name it")
    folders = moodle_folders(names[0], moodle) if moodle else {}  # before a page is written
    pages = write_feedback(where, names, list(students))
    if not pages:
        raise CourseError("there is nothing to return yet: run autograder grade first")
    click.echo(f"{counted(len(pages), 'page')} in {where.feedback}")
    if folders:
        path, left = for_moodle(where, names[0], folders, pages)
        click.echo(f"{path} is for Moodle to take")
        if left:
            click.echo(told([f"  {sentence}" for sentence in left]))


@command
def report(where: Places) -> None:
    """Write the class page: distributions, hardest tasks, every verdict."""
    from autograder.report.class_page import write_report

    click.echo(write_report(where, where.class_dir / "grades.html"))


@command
@assignments_argument
def similarity(where: Places, assignments: tuple[str, ...]) -> None:
    """Write a page of the submissions that are most alike, side by side."""
    from autograder.report.similarity import write_similarity

    names = chosen_assignments(where, assignments)
    click.echo(write_similarity(where, names, where.class_dir / "similarity.html"))


@command
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--assignment", metavar="NAME", help="Only this assignment.")
@click.option(
    "--fill",
    type=A_FILE,
    metavar="FILE",
    help="Fill in what Canvas (Gradebook, Export) or Moodle (grading worksheet) exported.",
)
@click.option("--column", default="", metavar="TITLE", help="The assignment's title in Canvas.")
def export(
    where: Places, path: Path | None, assignment: str | None, fill: Path | None, column: str
) -> None:
    """Write the grades as CSV, to a file or to the terminal.

    A row for each submission; with --fill, the LMS's own file with the grades of one assignment,
    scaled to the points that stand there, to be imported again.
    """
    from autograder.collect.tables import as_csv
    from autograder.report.export import filled, plain

    names = chosen_assignments(where, [assignment] if assignment else [])
    if column and not fill:
        raise CourseError("--column is the title of a column in the file that --fill names")
    if fill and not assignment:
        raise CourseError("a file is filled in for one assignment: name it with --assignment")
    rows, left = filled(where, names[0], fill, column) if fill else (plain(where, names), [])
    if path is None:
        click.echo(as_csv(rows), nl=False)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_csv(rows), encoding="utf-8", errors="replace")
        click.echo(f"{counted(len(rows), 'row')} in {path}")
    for sentence in left:
        click.echo(f"  {sentence}", err=True)


jupyter_options = click.argument(
    "options", nargs=-1, type=click.UNPROCESSED, metavar="[JUPYTER_OPTION]..."
)


@command
@jupyter_options
def lab(where: Places, options: tuple[str, ...]) -> None:
    """Start JupyterLab on a copy of the course to work in.

    Options that are not here are JupyterLab's own, such as --port 9000 or --no-browser.
    """
    from autograder import serve as serving

    _laid_out(where)
    serving.serve(where, options, teaches=False)


@command
@jupyter_options
def serve(where: Places, options: tuple[str, ...]) -> None:
    """Start the same JupyterLab with nbgrader's formgrader on the class.

    Options that are not here are JupyterLab's own, such as --port 9000 or --no-browser.
    """
    from autograder import serve as serving

    _laid_out(where)
    is_new = "" if where.gradebook.exists() else ", which is new: nobody handed in anything yet"
    click.echo(f"Class: {where.class_dir}{is_new}")
    if importlib.util.find_spec("nbgrader"):
        click.echo("Formgrader: the menu Nbgrader in JupyterLab, or /formgrader in the address.")
    serving.serve(where, options)


def _laid_out(where: Places) -> None:
    """The copy, and where it is."""
    from autograder import serve as serving

    for sentence in serving.lay_out(where):
        click.echo(sentence)
    click.echo(f"Yours to work in, and ignored by git: {where.work}")


@main.command()
@course_option
@click.option("--serve/--no-serve", "serves", default=True, help="Open the formgrader at the end.")
@jupyter_options
@in_sentences
def demo(course: Path | None, serves: bool, options: tuple[str, ...]) -> None:
    """Grade a made-up class of twelve, and show what comes of it: what to try first.

    It needs a checkout of the course, and writes to its build/demo alone. Options that are not
    here are JupyterLab's own, such as --port 9000 or --no-browser.
    """
    from autograder import demo as showing
    from byhand.runtime.walls.isolation import why_no_sandbox

    where, reason = showing.places(course_directory(course)), why_no_sandbox()
    walls = f"without a sandbox, as there is none here: {reason}" if reason else "in the sandbox"
    click.echo(f"Twelve made-up hand-ins of one exercise, graded as yours would be, {walls}.")
    click.echo("The first time takes about a minute, and again some seconds.")
    try:
        done = showing.graded(where)
        for line in showing.lines(done, max(80, shutil.get_terminal_size((120, 24)).columns)):
            click.echo(line)
        click.echo()
        pages = {os.path.relpath(path): what for path, what in showing.pages(done)}
        for path, what in pages.items():
            click.echo(f"  {path:{max(map(len, pages))}}  {what}")
    except KeyboardInterrupt:
        then = "What was graded is kept; the same command goes on from there."
        raise click.ClickException(f"interrupted. {then}") from None
    class_dir = os.path.relpath(where.class_dir)
    click.echo(
        f"\nEach step is a command, with --class {class_dir} for this class: autograder --help"
    )
    if done.problems:
        raise click.ClickException(told(done.problems))
    if serves:
        click.echo("The formgrader opens in your browser. Ctrl-C ends it.")
        showing.serve(where, options)


for one in (lab, serve, demo):  # what is no option of ours is for JupyterLab to read
    one.context_settings["ignore_unknown_options"] = True  # type: ignore[attr-defined] # click's
