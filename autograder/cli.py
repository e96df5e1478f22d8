"""The command line: one command for each step between an exercise and a mark."""

from pathlib import Path
from typing import Any

import click

from autograder import result_commands  # noqa: F401  (its commands add themselves)
from autograder.batch.commands import asked_of_slurm, run, slurm_options
from autograder.batch.slurm import on_slurm
from autograder.commands import (
    A_FILE,
    A_PATH,
    COUNT,
    assignments_argument,
    command,
    main,
    told,
    which_submissions,
)
from autograder.places import CourseError, Places, chosen_assignments
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.words import counted, plain_text


@command
@assignments_argument
@click.option("--overwrite", is_flag=True, help="Also exercises that somebody changed.")
def release(where: Places, assignments: tuple[str, ...], overwrite: bool) -> None:
    """Write exercises/ from solutions/, without solutions and hidden tests."""
    from autograder.release import generate as releasing

    names = chosen_assignments(where, assignments)
    for path in releasing.release(where, names, overwrite):
        click.echo(f"released {path.relative_to(where.course)}")
    for name in names:
        releasing.register(where, name)


@command
@click.argument("assignment")
@click.argument("inbox", type=A_PATH)
@click.option(
    "--worksheet",
    type=A_FILE,
    metavar="FILE",
    help="Moodle's grading worksheet: when each handed in.",
)
def collect(where: Places, assignment: str, inbox: Path, worksheet: Path | None) -> None:
    """Copy submissions from a folder or zip of downloads into the class.

    Knows the names that Canvas and Moodle give to what they pack; otherwise INBOX holds a folder
    for each student, or files called STUDENT_anything.ipynb. Who is who is kept in students.json.
    Canvas does not say when work came: let its late policy take points off.
    """
    from autograder.collect.door import FOREIGN, opened
    from autograder.collect.hand_ins import LATE
    from autograder.collect.hand_ins import collect as collecting

    [name] = chosen_assignments(where, [assignment])
    found, left, late = collecting(where, name, inbox, worksheet)
    if not found and not left:
        raise CourseError(f"{inbox} is empty: nothing was collected")
    handed_in = counted(len(found), "submission")
    click.echo(f"collected {handed_in} for {name} into {where.submitted}")
    for sentence in left:
        click.echo(f"  left out {sentence}")
    if late:
        click.echo(f"  {len(late)} {LATE.format(', '.join(late))}")
    for student in found:
        _, standing, why = opened(where, student, name)
        if standing == FOREIGN:
            click.echo(f"  {student}: {why}")


@command
@which_submissions
@click.option(
    "--jobs",
    type=COUNT,
    metavar="N",
    help="Submissions judged at once (default: one for each CPU; in a Slurm job four).",
)
@slurm_options
@click.option("--again", is_flag=True, help="Judge again what was judged before.")
@click.option(
    "--unsandboxed",
    "sandboxed",
    flag_value=False,
    default=True,
    help="Run submissions without walls: own work only.",
)
@click.option("--seed", type=int, help="Of the random inputs (default: fixed by the tests).")
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Most seconds for one test cell (default: its own limit, else 30; on GPUs four"
    " times that).",
)
@click.option(
    "--backend",
    type=click.Choice(["auto", "gloo", "nccl"]),
    help="Grade on GPUs, where there are any (default: on the CPU). gloo: ranks may share"
    " one; nccl: each rank has its own; auto: nccl where they suffice, else gloo.",
)
def grade(
    where: Places,
    assignments: tuple[str, ...],
    students: tuple[str, ...],
    jobs: int | None,
    slurm: bool,
    gpus: int | None,
    sbatch: dict[str, Any],
    backend: str | None,
    **how: Any,
) -> None:
    """Judge what is new or changed, record the scores, and say whose points changed and why."""
    from autograder.batch.grading import SHARD, GradeOptions, summary
    from autograder.batch.grading import grade as grading
    from autograder.batch.queue import cores
    from autograder.grade import late
    from autograder.grade.journal import Journal
    from autograder.report.again import changes

    request = asked_of_slurm(slurm, gpus=gpus, sbatch=sbatch)
    names = chosen_assignments(where, assignments)
    late.class_policy(where)  # a wrong one is said before a night of grading
    lent = _lent(where, backend, request.gpus if request else None)
    queue = on_slurm(request, where.class_dir / "slurm", SHARD, jobs or 4) if request else None
    options = GradeOptions(jobs=jobs or cores(), queue=queue, gpus=lent, **how)
    before = Journal(where.journal).latest()
    try:
        outcome = grading(where, names, list(students), options)
    except KeyboardInterrupt:
        then = "the same command goes on from there"
        then = "--again would judge all of it again" if options.again else then
        raise click.ClickException(f"interrupted. What was graded is kept; {then}.") from None
    strangers = late.apply(where)
    for line in [*summary(outcome), *strangers]:
        click.echo(plain_text(line, None))
    if changed := list(changes(where, before, outcome.judgements)):
        click.echo(told(changed))
    if outcome.failures:
        raise click.ClickException(told(outcome.failures))


def _lent(where: Places, backend: str | None, on_nodes: int | None) -> Gpus:
    """The GPUs that ranks get: none unless a backend was asked for."""
    if backend is None:
        return NO_GPUS
    from autograder.grade import devices

    return devices.chosen(where, backend, on_nodes)


main.add_command(run)
