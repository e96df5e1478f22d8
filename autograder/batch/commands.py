"""`autograder run`, and the options for work on Slurm that `autograder grade` has too."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from autograder.batch.cluster import Request
from autograder.batch.notebooks import CELL_SECONDS, Options, Ran, find_notebooks, run_notebooks
from autograder.batch.slurm import on_slurm
from autograder.commands import course_option
from autograder.places import CourseError, course_directory

DEFAULT_MINUTES = 240


def _pairs(_context: Any, _option: Any, texts: Sequence[str]) -> dict[str, Any]:
    """--sbatch partition=gpu, and --sbatch exclusive for an option without a value."""
    named = [text.lstrip("-").partition("=") for text in texts]
    return {name: value if equals else True for name, equals, value in named}


def _options(cpus: int) -> list[Callable[..., Any]]:
    return [
        click.option("--slurm", is_flag=True, help="As a job array on Slurm, not here."),
        click.option("--gpus", type=click.IntRange(0), help="With --slurm: GPUs on each node."),
        click.option(
            "--cpus",
            type=click.IntRange(1),
            metavar="N",
            help=f"With --slurm: processors for each job (default: {cpus}).",
        ),
        click.option(
            "--time",
            "minutes",
            type=click.IntRange(1),
            metavar="MINUTES",
            help=f"With --slurm: limit for each job (default: {DEFAULT_MINUTES}).",
        ),
        click.option(
            "--sbatch",
            "more",
            multiple=True,
            callback=_pairs,
            metavar="NAME=VALUE",
            help="With --slurm: an option of sbatch, such as partition=gpu; repeatable.",
        ),
    ]


def slurm_options(cpus: int) -> Callable[..., Any]:
    """Adds --slurm and what goes with it to a command, which gets `request`: None without --slurm.

    `cpus` is what a job asks for unless told otherwise.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, slurm, **rest: Any) -> Any:
            asked = {
                name: rest.pop(name, None) for name in ("gpus", "cpus", "minutes", "more", "nodes")
            }
            return function(*args, request=_request(slurm, asked, cpus), **rest)

        return functools.reduce(lambda f, option: option(f), reversed(_options(cpus)), wrapped)

    return decorate


def _request(slurm: bool, asked: dict[str, Any], cpus: int) -> Request | None:
    options = {"minutes": "--time", "more": "--sbatch"}
    given = [options.get(name, f"--{name}") for name, value in asked.items() if value]
    if not slurm and given:
        raise click.UsageError(f"{', '.join(given)} only with --slurm")
    if not slurm:
        return None
    return Request(
        nodes=asked["nodes"] or 1,
        gpus_per_node=asked["gpus"] or 0,
        cpus=asked["cpus"] or cpus,
        minutes=asked["minutes"] or DEFAULT_MINUTES,
        sbatch=asked["more"],
    )


def _parameter(_context, _option, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """-p world_size 2 is a number, -p backend gloo a word: what JSON reads is what it is."""
    parameters = {}
    for name, text in pairs:
        try:
            parameters[name] = json.loads(text)
        except ValueError:
            parameters[name] = text
    return parameters


@click.command("run")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
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
@click.option("-j", "--jobs", default=1, type=click.IntRange(1), help="Notebooks at a time.")
@course_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the executed notebooks go (default: build in the course directory).",
)
@click.option("--html/--no-html", default=True, help="Write a page for each notebook.")
@click.option("--cell-seconds", default=CELL_SECONDS, show_default=True, help="Limit for one cell.")
@click.option(
    "--nodes",
    type=click.IntRange(1),
    help="With --slurm: nodes for each notebook, whose ranks `launch` spreads over them.",
)
@slurm_options(cpus=4)
def run(paths, parameters, jobs, course, out, html, cell_seconds, request):
    """Execute notebooks, or all notebooks in folders, and check that every cell ran.

    \b
    autograder run lectures/
    autograder run lectures/02_collectives.ipynb -p world_size 2
    autograder run lectures/ --slurm --nodes 2 --gpus 4 -p world_size 8
    """
    try:
        out = out or course_directory(course) / "build"
        options = Options(out, parameters, jobs, html, cell_seconds, progress=True)
        if request is not None:
            options.queue = on_slurm(request, Path(out).resolve() / "slurm")
            options.over_nodes = request.nodes > 1
        results = run_notebooks(find_notebooks(paths), options)
    except CourseError as error:
        raise click.ClickException(str(error)) from error
    click.echo(summary(results))
    failed = [f"{ran.error} (see {ran.log})" for ran in results if ran.error]
    if failed:
        raise click.ClickException("\n".join(failed))


def summary(results: Sequence[Ran]) -> str:
    """The table: a line for each notebook, and one for all."""
    node = max([len(ran.node) for ran in results], default=0)
    lines = [
        f"{'failed' if ran.error else 'ran':6} {ran.done:4} of {ran.cells:<3} cells"
        f" {ran.seconds:7.1f} s  {f'{ran.node:{node}}  ' if node else ''}{ran.name}"
        for ran in results
    ]
    good = sum(not ran.error for ran in results)
    total = sum(ran.seconds for ran in results)
    return "\n".join([*lines, f"{good} of {len(results)} notebooks ran, {total:.1f} s in all"])
