"""Notebooks executed on Slurm: one job of an array for each, with a log and a record of its own.

A job works in a folder of its own on the shared file system, and appends to a record what it has
done. The process that submitted it moves a finished notebook to its place, so nothing is half
written there, also when a job was lost and is done a second time.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.batch.notebooks import Options, Ran, execute, prepare, progress_bar
from autograder.batch.slurm import Array, Request, new_folder


def on_slurm(notebooks: Sequence[Path], options: Options, request: Request) -> list[Ran]:
    """Execute the notebooks as the jobs of an array, with a progress bar that counts cells.

    With several nodes, `launch` in a notebook starts its ranks on all of them.

    Raises:
        CourseError: as run_notebooks and Array say.
    """
    results = prepare(notebooks, options)
    folder = new_folder(Path(options.out).resolve() / "slurm")
    tasks = [
        NotebookTask(ran, options, folder / str(place), request.nodes > 1)
        for place, ran in enumerate(results)
    ]
    array = Array(tasks, folder, request)
    with progress_bar(results) as bar, contextlib.closing(array.follow()) as looks:
        for queue in looks:
            for task in tasks:
                task.look()
            bar.set_description(str(queue), refresh=False)
            bar.update(sum(ran.done for ran in results) - bar.n)
    for place, task in enumerate(tasks):
        task.take_over(array.given_up.get(place))
    return results


@dataclass
class NotebookTask:
    """One notebook; `ran` is what is known of it, in the job and where it was submitted."""

    ran: Ran
    options: Options
    folder: Path
    over_nodes: bool
    attempt: int = 0

    @property
    def out(self) -> Path:
        """Where this attempt works."""
        return self.folder / str(self.attempt)

    @property
    def record(self) -> Path:
        """What this attempt has done: a line of JSON for each cell, and one at the end."""
        return self.out / "record.jsonl"

    def begin(self, attempt: int) -> None:
        """Make the record before the job does: a file that is there is never cached as missing."""
        self.attempt = attempt
        self.out.mkdir(parents=True)
        self.record.touch()

    def do(self) -> None:
        """Execute the notebook, and say so in the record."""
        if self.over_nodes:
            os.environ["BYHAND_LAUNCHER"] = "slurm"
        ran = replace(self.ran, output=self.out / self.ran.output.name, done=0)
        with open(self.record, "a", buffering=1) as record:

            def say(ran: Ran, **more: Any) -> None:
                record.write(json.dumps({"done": ran.done, **more}) + "\n")

            say(ran, node=os.environ.get("SLURMD_NODENAME", ""))
            execute([ran], self.options, say)
            say(ran, error=ran.error, seconds=ran.seconds)

    def look(self) -> None:
        """Take in what the record says."""
        for line in self.record.read_text().splitlines(keepends=True):
            said = json.loads(line) if line.endswith("\n") else {}
            for name, value in said.items():
                setattr(self.ran, name, value)

    def is_done(self) -> bool:
        """Whether the record has its last line: with an error or without, the notebook was run."""
        return '"seconds"' in self.record.read_text()

    def take_over(self, lost: str | None) -> None:
        """Move what this attempt made to its place; a notebook that was lost says why."""
        self.look()
        if lost is not None:
            self.ran.error = f"{self.ran.name}: {lost}"
        made = self.out / self.ran.output.name
        self.ran.output.parent.mkdir(parents=True, exist_ok=True)
        for target in (self.ran.output, self.ran.html, self.ran.log):
            source = made.with_suffix(target.suffix)
            if source.exists():
                os.replace(source, target)
            else:
                target.unlink(missing_ok=True)
