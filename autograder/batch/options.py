"""The options that `autograder run` and `autograder grade` share for work on Slurm."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from autograder.batch.slurm import Request

DEFAULT_MINUTES = 240


def _pairs(_context: Any, _option: Any, texts: Sequence[str]) -> dict[str, Any]:
    """--sbatch partition=gpu, and --sbatch exclusive for an option without a value."""
    named = [text.lstrip("-").partition("=") for text in texts]
    return {name: value if equals else True for name, equals, value in named}


def slurm_options(cpus: int) -> Callable[..., Any]:
    """Adds --slurm and what goes with it to a command, which gets `request`: None without --slurm.

    `cpus` is what a job asks for unless told otherwise.
    """
    options = [
        click.option("--slurm", is_flag=True, help="As a job array on Slurm, not here."),
        click.option("--gpus", type=click.IntRange(0), help="With --slurm: GPUs on each node."),
        click.option("--cpus", type=click.IntRange(1), metavar="N",
                     help=f"With --slurm: processors for each job (default: {cpus})."),
        click.option("--time", "minutes", type=click.IntRange(1), metavar="MINUTES",
                     help=f"With --slurm: limit for each job (default: {DEFAULT_MINUTES})."),
        click.option("--sbatch", "more", multiple=True, callback=_pairs, metavar="NAME=VALUE",
                     help="With --slurm: an option of sbatch, such as partition=gpu; repeatable."),
    ]  # fmt: skip

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, slurm, gpus, minutes, more, **rest: Any) -> Any:
            asked = {"--gpus": gpus, "--cpus": rest["cpus"], "--time": minutes, "--sbatch": more,
                     "--nodes": rest.get("nodes")}  # fmt: skip
            request = _request(slurm, asked, cpus)
            rest.pop("cpus")
            rest.pop("nodes", None)
            return function(*args, request=request, **rest)

        return functools.reduce(lambda f, option: option(f), reversed(options), wrapped)

    return decorate


def _request(slurm: bool, asked: dict[str, Any], cpus: int) -> Request | None:
    given = [name for name, value in asked.items() if value]
    if not slurm and given:
        raise click.UsageError(f"{', '.join(given)} only with --slurm")
    if not slurm:
        return None
    return Request(
        nodes=asked["--nodes"] or 1,
        gpus_per_node=asked["--gpus"] or 0,
        cpus=asked["--cpus"] or cpus,
        minutes=asked["--time"] or DEFAULT_MINUTES,
        sbatch=asked["--sbatch"],
    )
