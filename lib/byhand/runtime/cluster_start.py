"""Starting a program on every node of a Slurm allocation: one srun, torchrun on each node."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path

import torch.distributed as dist

from byhand.runtime.cluster_node import KEY
from byhand.runtime.errors import LaunchError
from byhand.runtime.process.client import ENVIRON

START_SECONDS = 120.0
CLOSE_SECONDS = 10.0


@dataclass(frozen=True)
class Allocation:
    """The Slurm allocation that this process is in."""

    job: str
    num_nodes: int

    @classmethod
    def current(cls, environ: Mapping[str, str] = os.environ) -> Allocation:
        """Read from Slurm's variables.

        Raises:
            LaunchError: this process is in no allocation, or srun is not on PATH.
        """
        job = environ.get("SLURM_JOB_ID")
        if job is None or shutil.which("srun") is None:
            raise LaunchError(
                'launcher="slurm" starts ranks on the nodes of a Slurm allocation, and this process'
                " is in none: start it with salloc or sbatch, or by autograder run --slurm"
            )
        nodes = environ.get("SLURM_JOB_NUM_NODES") or environ.get("SLURM_NNODES") or "1"
        return cls(job, int(nodes))


class Step:
    """The job step that runs byhand.runtime.cluster_node on each node, and where they report.

    Nobody joins without the key, which only the step's environment holds. torchrun's rendezvous
    meets at a store of this process, on a port that was free: none is fixed.
    """

    def __init__(self, allocation: Allocation):
        self.allocation = allocation
        self.key = secrets.token_bytes(32)
        self.listener = Listener(("0.0.0.0", 0), backlog=allocation.num_nodes, authkey=self.key)
        self.store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        self.said = tempfile.TemporaryFile()
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            self._command(),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=self.said,
            stderr=self.said,
            env={**os.environ, **ENVIRON, "PYTHONPATH": path, KEY: self.key.hex()},
        )

    def _command(self) -> list[str]:
        nodes = str(self.allocation.num_nodes)
        step = ["--overlap", "--cpu-bind=none", "--mpi=none", "--kill-on-bad-exit=1"]
        place = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
        # Slurm tells each task, and only the task, the address of the node that srun runs on
        torchrun = (
            f'exec "$0" -m torch.distributed.run --nnodes={nodes} --nproc-per-node=1'
            f" --rdzv-backend=c10d --rdzv-id={self.allocation.job} --rdzv-conf=is_host=false"
            f' --rdzv-endpoint="$SLURM_LAUNCH_NODE_IPADDR:{self.store.port}" --max-restarts=0'
            f" -m byhand.runtime.cluster_node {self.listener.address[1]}"
        )
        return ["srun", *step, *place, "sh", "-c", torchrun, sys.executable]

    def connections(self) -> list[Connection]:
        """One connection from each node, as they come.

        Raises:
            LaunchError: they did not all come; the message ends with srun's last words.
        """
        found: list[Connection] = []
        until = time.monotonic() + START_SECONDS
        self.listener._listener._socket.settimeout(0.2)
        while len(found) < self.allocation.num_nodes:
            if time.monotonic() > until or self.process.poll() is not None:
                came = f"{len(found)} of {self.allocation.num_nodes} nodes came"
                raise LaunchError(f"{came}; {self.last_words()}")
            with contextlib.suppress(TimeoutError, AuthenticationError, EOFError):
                found.append(self.listener.accept())
        return found

    def last_words(self) -> str:
        """What srun, torchrun and the nodes said last."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        self.said.seek(0)
        text = self.said.read().decode(errors="replace").strip()
        return f"their last words: {text[-2000:]}" if text else "they said nothing"

    def close(self, at_once: bool = False) -> None:
        """End the step; return when srun, and so all that it started, is gone.

        The nodes end by themselves when their connections do; `at_once` does not wait for that.
        """
        self.listener.close()
        gentle = [] if at_once else [lambda: None]
        for end in (*gentle, self.process.terminate, self.process.kill):
            end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(CLOSE_SECONDS)
                break
        self.said.close()
        del self.store
