"""`autograder run`, and the options for work on Slurm that `autograder grade` has too."""

import ast
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from autograder.batch import queue
from autograder.batch.slurm import Request, on_slurm
from autograder.commands import A_PATH, COUNT, course_option, options
from autograder.places import CourseError, course_directory


def _pairs(_context: Any, _option: Any, texts: Sequence[str]) -> dict[str, Any]:
    """--sbatch partition=gpu, and --sbatch exclusive for an option without a value."""
    named = [text.lstrip("-").partition("=") for text in texts]
    return {name: value if equals else True for name, equals, value in named}


slurm_options = options(
    click.option("--slurm", is_flag=True, help="As a job array on Slurm, not here."),
    click.option("--gpus", type=COUNT, help="With --slurm: GPUs on each node."),
    click.option(
        "--sbatch",
        multiple=True,
        callback=_pairs,
        metavar="NAME=VALUE",
        help="With --slurm: an option of sbatch, such as partition=gpu or time=90; repeatable.",
    ),
)


def asked_of_slurm(slurm: bool, **asked: Any) -> Request | None:
    """What --slurm and the options that go with it ask for; None without it."""
    asked = {name: value for name, value in asked.items() if value}
    if asked and not slurm:
        raise click.UsageError(f"{', '.join(f'--{name}' for name in asked)} only with --slurm")
    return Request(**asked) if slurm else None


def _parameter(_: Any, option: Any, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """-p world_size 2 is a number, -p backend gloo a word: as JSON or Python reads it."""
    return {name: _value(text) for name, text in pairs}


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):  # true, and 16_384 or True
        with contextlib.suppress(ValueError, SyntaxError):
            return read(text)
    return text


@click.command("run")
@click.argument("paths", nargs=-1, required=True, type=A_PATH)
@click.option(
    "-p",
    "--parameter",
    "parameters",
    nargs=2,
    multiple=True,
    callback=_parameter,
    metavar="NAME VALUE",
    help="A value for the notebooks' parameters cell, such as: -p world_size 2",
)
@click.option("-j", "--jobs", default=1, type=COUNT, help="Notebooks at a time.")
@course_option
@click.option(
    "--out",
    type=A_PATH,
    metavar="DIR",
    help="Where the executed notebooks go (default: build in the course directory).",
)
@click.option("--html/--no-html", default=True, help="Write a page for each notebook.")
@click.option(
    "--cell-seconds",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="Limit for one cell.",
)
@click.option(
    "--nodes",
    type=COUNT,
    help="With --slurm: nodes for each notebook, whose ranks `launch` spreads over them.",
)
@slurm_options
def run(
    paths: tuple[Path, ...],
    parameters: dict[str, Any],
    jobs: int,
    course: Path | None,
    out: Path | None,
    html: bool,
    cell_seconds: float,
    slurm: bool,
    **asked: Any,
) -> None:
    """Execute notebooks, or all notebooks in folders, and check that every cell ran.

    In a folder, what lies below --out is left out: an earlier run wrote it.

    \b
    autograder run lectures/
    autograder run lectures/02_collectives.ipynb -p world_size 2
    autograder run lectures/ --slurm --nodes 2 --gpus 2 -p world_size 4
    """
    from autograder.batch.notebooks import find_notebooks, run_notebooks
    from autograder.batch.running import Running

    request = asked_of_slurm(slurm, **asked)
    try:
        out = out or course_directory(course) / "build"
        nodes = request.nodes if request else 1
        work = Running(parameters, cell_seconds, html, over_nodes=nodes > 1)
        do = on_slurm(request, out.resolve() / "slurm") if request else queue.here(jobs)
        results = run_notebooks(find_notebooks(paths, out), out, work, do, progress=True)
    except CourseError as error:
        raise click.ClickException(str(error)) from error
    wide = max(len(ran.node) for ran in results)
    for ran in results:
        ended, node = "failed" if ran.error else "ran", f"{ran.node:{wide}}  " if wide else ""
        click.echo(f"{ended:6} {ran.seconds:7.1f} s  {node}{ran.name}")
    failed = [
        f"{ran.error} (see {ran.log})" if Path(ran.log).exists() else ran.error
        for ran in results
        if ran.error
    ]
    total = sum(ran.seconds for ran in results)
    good = len(results) - len(failed)
    click.echo(f"{good} of {len(results)} notebooks ran, {total:.1f} s in all")
    if failed:
        raise click.ClickException("\n".join(failed))
