"""`autograder run`: notebooks executed here or on Slurm, and a table of how each fared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from autograder.batch.notebooks import CELL_SECONDS, Options, Ran, find_notebooks, with_progress
from autograder.batch.notebooks_slurm import on_slurm
from autograder.batch.options import slurm_options
from autograder.places import COURSE, CourseError


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
@click.option("--out", default=COURSE / "build", type=click.Path(path_type=Path), show_default=True)
@click.option("--html/--no-html", default=True, help="Write a page for each notebook.")
@click.option("--cell-seconds", default=CELL_SECONDS, show_default=True, help="Limit for one cell.")
@click.option(
    "--nodes",
    type=click.IntRange(1),
    help="With --slurm: nodes for each notebook, whose ranks `launch` spreads over them.",
)
@slurm_options(cpus=4)
def run(paths, parameters, jobs, out, html, cell_seconds, request):
    """Execute notebooks, or all notebooks in folders, and check that every cell ran.

    \b
    autograder run lectures/
    autograder run lectures/02_collectives.ipynb -p world_size 2
    autograder run lectures/ --slurm --nodes 2 --gpus 4 -p world_size 8
    """
    try:
        notebooks = find_notebooks(paths)
        options = Options(out, parameters, jobs, html, cell_seconds)
        if request is None:
            results = with_progress(notebooks, options)
        else:
            results = on_slurm(notebooks, options, request)
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
