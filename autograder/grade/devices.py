"""Where a class is graded: on the CPU, or on the GPUs of this machine or of a job's node.

Without `--backend` the ranks keep to the CPU and to gloo, GPUs or not: there a grade is the same on
every machine, and memory is bounded. With it, and where there are GPUs, the ranks' tensors live
there: `gloo` lets ranks share GPUs, `nccl` gives each rank its own or refuses, `auto` takes NCCL
for launches of no more ranks than GPUs and gloo for those of more. Where there is no GPU, `auto`
and `gloo` are as without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import nbformat
import torch
from nbformat import NotebookNode

from autograder.grade.notebook import WarmKernel
from autograder.grade.plan import LIMITS, plan
from autograder.places import CourseError, Places
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.isolation import sandbox_command, why_no_sandbox
from byhand.runtime.walls.question import Sandbox


def lent(asked: str | None, found: int, where: str = "this machine has") -> Gpus:
    """What the ranks get when `asked` was asked for and `found` GPUs are there.

    Raises:
        CourseError: NCCL without any GPU.
    """
    if asked == "nccl" and not found:
        raise CourseError(
            f"--backend nccl needs a GPU for each rank, and {where} none that torch"
            f" {torch.__version__} can use. Leave --backend out to grade on the CPU."
        )
    return Gpus(found, asked) if asked and found else NO_GPUS


def refuse_too_few(gpus: Gpus, needed: Mapping[str, int], where: str = "this machine has") -> None:
    """`needed`: the most ranks that each assignment's tests start.

    Raises:
        CourseError: NCCL was asked for, and some tests start more ranks than there are GPUs.
    """
    if gpus.backend != "nccl":
        return
    name = max(needed, key=lambda name: needed[name], default=None)
    if name is None or needed[name] <= gpus.count:
        return
    more = sum(count > gpus.count for count in needed.values())
    raise CourseError(
        f"--backend nccl needs a GPU for each rank: the tests of {name} start {needed[name]} ranks,"
        f" and {where} {gpus.count} ({more} of {len(needed)} assignments need more). Use --backend"
        " auto, whose ranks share GPUs through gloo where there are too few, or --backend gloo."
    )


def chosen(where: Places, names: Sequence[str], asked: str | None, on_nodes: int | None) -> Gpus:
    """What a class is graded on, found out before any grading.

    `on_nodes`: the GPUs that each Slurm job asks for; None on this machine, where they are tried.

    Raises:
        CourseError: it cannot be done; the sentence says what there is and what to do.
    """
    words = "this machine has" if on_nodes is None else "each job (--gpus) has"
    gpus = lent(asked, torch.cuda.device_count() if on_nodes is None else on_nodes, words)
    if on_nodes is None and (reason := why_out_of_reach(gpus, (where.course, where.class_dir))):
        raise CourseError(
            f"the sandbox cannot use this machine's GPUs: {reason}. Leave --backend"
            " out to grade on the CPU."
        )
    if gpus.backend == "nccl":
        todo = [name for name in names if any(where.submitted.glob(f"*/{name}"))]
        sources = {name: nbformat.read(where.source(name), as_version=4) for name in todo}
        refuse_too_few(gpus, {name: most_ranks(sources[name]) for name in todo}, words)
    return gpus


def why_out_of_reach(gpus: Gpus, hide: Sequence[Any] = ()) -> str | None:
    """None where a sandboxed rank can use each of the GPUs (or there are none): it is tried."""
    if not gpus.count:
        return None
    command = () if why_no_sandbox() else sandbox_command(hide, gpus.files)
    with Sandbox(command, gpus) as launcher:
        return launcher.why_no_gpus(gpus.limits(LIMITS))


def most_ranks(source: NotebookNode) -> int:
    """The most ranks that a launch of these tests starts: counted, by judging the solution."""
    with WarmKernel(sandboxed=False) as kernel:  # the instructor's own
        verdicts = kernel.judge(plan(source, source), seed=0).verdicts
    return max((verdict.ranks for verdict in verdicts), default=1)
