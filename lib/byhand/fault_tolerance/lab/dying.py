"""A run under torchrun of which one rank is killed: what it did, and when.

The ranks are byhand.fault_tolerance.lab.worker's, processes of torchrun's own. Each writes a diary;
whoever kills reads it, waits for a step, and sends SIGKILL, which no program can catch.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from byhand.costs.layout import Layout
from byhand.fault_tolerance.lab.worker import make
from byhand.runtime import launch

WAIT_SECONDS = 120.0
Entry = dict[str, Any]  # of a diary: see worker.Diary


@dataclass(repr=False)
class Death:
    """What the diaries say of a run of which one rank was killed, at `when` by the wall clock."""

    entries: list[Entry]
    victim: int
    when: float
    every: int
    exit_code: int
    log: str

    def of(self, what: str, **about: Any) -> list[Entry]:
        """The entries of that kind, by time."""
        about["what"] = what
        return [e for e in self.entries if all(e.get(key) == value for key, value in about.items())]

    def losses(self, restart: int) -> dict[int, float]:
        """By step, what rank 0 noted before the death (0) or after it (1)."""
        return {e["step"]: e["loss"] for e in self.of("step", rank=0, restart=restart)}

    @property
    def lost(self) -> list[int]:
        """The steps that had to be taken again."""
        return sorted(set(self.losses(0)) & set(self.losses(1)))

    @property
    def new(self) -> int:
        """The first step that had not been taken before."""
        return max(self.losses(0)) + 1

    @property
    def parts(self) -> dict[str, float]:
        """Seconds from the death to the first new step, by what they were spent on.

        Each part ends when the last rank has done with it; that of loading, with the first step.
        """
        done = [self.of("started", restart=1), self.of("imported", restart=1)]
        done += [self.of("step", restart=1, step=k) for k in (min(self.losses(1)), self.new)]
        ends = [max(entry["when"] for entry in entries) for entries in done]
        pairs = pairwise([self.when, *ends])
        return {name: end - start for name, (start, end) in zip(PARTS, pairs, strict=True)}


PARTS = "restarting", "importing torch", "joining, loading, first step", "lost steps again"


def kill_one(
    folder: Path,
    num_steps: int = 60,
    every: int = 10,
    after: int = 27,
    num_ranks: int = 2,
    victim: int = 1,
) -> Death:
    """Train under torchrun, kill a rank soon after a step, and wait until the run has ended.

    folder: where each call makes one of its own. every: a checkpoint each so many steps. No process
    of the run is left when this returns.

    Raises:
        RuntimeError: the run could not start, or did not end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=folder))  # without the diaries of a call before this one
    run = ["--standalone", "--nproc-per-node", str(num_ranks), "--max-restarts", "1"]
    worker = ["-m", "byhand.fault_tolerance.lab.worker", str(folder), str(num_steps), str(every)]
    command = [sys.executable, "-m", "torch.distributed.run", *run, *worker]
    log = folder / "log.txt"
    with open(log, "wb") as file:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)},
            start_new_session=True,
        )
    try:
        wanted = wait_for(folder, started, victim, after)
        when = time.time()
        os.kill(wanted["pid"], signal.SIGKILL)
        code = started.wait(WAIT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"torchrun did not end:\n{log.read_text()[-2000:]}") from error
    finally:
        end(started)
    return Death(diaries(folder), victim, when, every, code, log.read_text())


def never_killed(num_steps: int = 60, num_ranks: int = 2) -> list[float]:
    """The losses of the same run, which nobody kills."""
    return launch(_all_of_it, num_ranks, (num_steps,)).results[0]


def _all_of_it(rank: int, world_size: int, num_steps: int) -> list[float]:
    return list(make(Layout(dp=world_size)).train(num_steps))


def wait_for(folder: Path, started: subprocess.Popen, rank: int, step: int) -> Entry:
    """What a rank noted after that step, as soon as it has."""
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until and started.poll() is None:
        for entry in diaries(folder):
            if entry["what"] == "step" and entry["rank"] == rank and entry["step"] >= step:
                return entry
        time.sleep(0.01)
    said = (folder / "log.txt").read_text()[-2000:]
    raise RuntimeError(f"rank {rank} never took step {step}:\n{said}")


def diaries(folder: Path) -> list[Entry]:
    """What all ranks have noted so far, by time."""
    lines = [
        line
        for path in folder.glob("diary-*.jsonl")
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    return sorted(map(json.loads, lines), key=lambda entry: entry["when"])


def end(started: subprocess.Popen) -> None:
    """End torchrun and all its processes, if there are any left."""
    with contextlib.suppress(psutil.NoSuchProcess):
        left = psutil.Process(started.pid).children(recursive=True)
        started.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(10)
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        started.kill()
        started.wait()
