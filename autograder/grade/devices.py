"""Where a class is graded: on the CPU, or on the GPUs of this machine or of a job's node.

Without `--backend` the ranks keep to the CPU and to gloo, GPUs or not: there a grade is the same on
every machine, and memory is bounded. With it, and where there are GPUs, the ranks' tensors live
there: `gloo` lets ranks share GPUs, `nccl` gives each rank its own (a question that starts more
ranks than there are GPUs cannot be judged), `auto` takes NCCL for launches of no more ranks than
GPUs and gloo for those of more. Where there is no GPU, `auto` and `gloo` are as without.
"""

import torch

from autograder.grade.judge import LIMITS
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


def chosen(where: Places, asked: str | None, on_nodes: int | None) -> Gpus:
    """What a class is graded on, found out before any grading.

    `on_nodes`: the GPUs that each Slurm job asks for; None on this machine, where they are tried
    behind the walls of a question.

    Raises:
        CourseError: it cannot be done; the sentence says what there is and what to do.
    """
    if on_nodes is not None:
        return lent(asked, on_nodes, "each job (--gpus) has")
    gpus = lent(asked, torch.cuda.device_count())
    hide = where.course, where.class_dir
    command = () if why_no_sandbox() or not gpus.count else sandbox_command(hide, gpus.files)
    with Sandbox(command, gpus) as launcher:
        if reason := launcher.why_no_gpus(gpus.limits(LIMITS)):
            raise CourseError(
                f"the sandbox cannot use this machine's GPUs: {reason}. Leave --backend"
                " out to grade on the CPU."
            )
    return gpus
