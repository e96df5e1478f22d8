"""What is asked of Slurm: sbatch by way of submitit, squeue, scancel.

squeue and not sacct, which needs a database that small clusters lack.
"""

import contextlib
import getpass
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CANCEL_SECONDS = 30.0
COMMAND_SECONDS = 60.0


@dataclass(frozen=True)
class Request:
    """What each job asks Slurm for: GPUs on each node, minutes; further options by long names."""

    nodes: int = 1
    gpus: int = 0
    cpus: int = 4
    time: int = 240
    sbatch: dict[str, Any] = field(default_factory=dict)


def queued_jobs() -> dict[str, tuple[str, str]] | None:
    """{job id: (state, reason)} of this user's jobs, array tasks by themselves; None: no answer."""
    try:
        said = _squeue("--user", getpass.getuser(), "--format=%i|%T|%r")
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None  # the controller is busy or restarting: nothing is known to have ended
    rows = [line.split("|") for line in said.splitlines()]
    return {job: (state, reason) for job, state, reason in rows}


def cancel_left_by(folder: Path) -> None:
    """Cancel the jobs of an array that a process which is gone has left in the queue."""
    with contextlib.suppress(subprocess.CalledProcessError):
        cancel(_squeue(f"--name={_name(folder)}", "--format=%i").split())


def cancel(jobs: Sequence[str]) -> None:
    """Cancel these jobs; return when they have left the queue."""
    if not jobs:
        return
    subprocess.run(["scancel", *jobs], capture_output=True, timeout=COMMAND_SECONDS, check=False)
    until = time.monotonic() + CANCEL_SECONDS
    while time.monotonic() < until:
        listed = queued_jobs()
        if listed is not None and not set(jobs) & set(listed):
            return
        time.sleep(0.5)


def _squeue(*options: str) -> str:
    return subprocess.run(
        ["squeue", "--noheader", "--array", *options],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=True,
    ).stdout


def executor(folder: Path, request: Request) -> Any:
    """What submits job arrays whose files lie in `folder`, and whose name has its name in it."""
    import submitit

    executor = submitit.SlurmExecutor(folder)
    more = {name.replace("-", "_"): value for name, value in request.sbatch.items()}
    executor.update_parameters(
        job_name=_name(folder),
        nodes=request.nodes,
        ntasks_per_node=1,
        cpus_per_task=request.cpus,
        time=request.time,
        stderr_to_stdout=False,
        use_srun=request.nodes == 1,  # with several nodes, on the first: it starts the ranks' own
        additional_parameters={"no_requeue": True, **more},
        **({"gpus_per_node": request.gpus} if request.gpus else {}),
    )
    return executor


def _name(folder: Path) -> str:
    return f"autograder-{folder.name}"
