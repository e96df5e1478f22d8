"""Starts ranks, hands them their call, and waits for what comes back: one Launcher per wall."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist

from byhand.runtime.errors import LaunchError
from byhand.runtime.network.virtual import VirtualNetwork
from byhand.runtime.process.client import ForkClient
from byhand.runtime.process.member import Member
from byhand.runtime.process.request import check_arguments, memory_file, pickled
from byhand.runtime.process.world import choose_backend
from byhand.runtime.run import Run
from byhand.runtime.trace import sources
from byhand.runtime.walls import on_gpu
from byhand.runtime.walls.gpus import Gpus
from byhand.runtime.walls.kernel_count import Audit
from byhand.runtime.watch.supervise import Supervisor

WARM_TEAMS = 2
NETWORKS_KEPT = 2


class Launcher:
    """Starts ranks from one fork server; closing it leaves no process behind.

    `command` is put before the fork server's own (a sandbox). With `trusted=False` results come
    back only as plain data and tensors, through the codec. `limits` bound each rank: memory_bytes,
    address_bytes, processes (with threads), file_bytes, open_files, cpu_seconds, output_bytes,
    log_bytes, reply_bytes, scratch_bytes; with shared_files they share one /tmp.
    `prelude` are (label, source) cells run on each rank first. No launch outlasts `until`, a
    time.monotonic() moment. `gpus`: what the sandbox has of them, and so what "auto" means;
    ranks with a limit device_bytes keep their tensors there.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        trusted: bool = True,
        limits: dict[str, int] | None = None,
        prelude: Sequence[tuple[str, str]] = (),
        until: float | None = None,
        gpus: Gpus | None = None,
    ):
        self.command = list(command)
        self.trusted = trusted
        self.limits = dict(limits or {})
        self.prelude = [list(cell) for cell in prelude]
        self.until = until
        self.gpus = gpus
        self.private = False  # each rank has its own /tmp, and the kernel counts what they send
        self.network: VirtualNetwork | None = None
        self._networks: dict[VirtualNetwork, Launcher] = {}
        self._keeps_warm = True
        self._client: ForkClient | None = None
        self._warm: dict[tuple, tuple[int, list[Member]]] = {}
        self._gpus = None if gpus is None else gpus.count
        self._lock = threading.RLock()
        for label, source in self.prelude if trusted else ():
            sources.remember(label, source)

    def launch(
        self,
        fn: Callable[..., Any],
        world_size: int,
        args: Sequence[Any] = (),
        *,
        backend: str = "auto",
        deadline: float = 60.0,
        threads_per_rank: int = 1,
        network: VirtualNetwork | None = None,
        setup: bool = True,
        memory: bool = False,
        alone: bool = False,
    ) -> Run:
        """Run `fn(rank, world_size, *args)` on fresh ranks, as byhand.launch says.

        With `alone`, `fn(*args)`.
        """
        check_arguments(fn, world_size, args, deadline, threads_per_rank, network)
        if network != self.network:
            options = {"backend": backend, "deadline": deadline, "setup": setup, "alone": alone}
            options.update(threads_per_rank=threads_per_rank, network=network, memory=memory)
            return self._on(network).launch(fn, world_size, args, **options)
        with self._lock:
            self.start()
            calls = pickled(fn, world_size, args)
            spec = {
                "world_size": world_size,
                "threads": threads_per_rank,
                "setup": setup,
                "backend": self._backend(backend, world_size),
                "limits": self.limits,
                "private": self.private,
            }
            if self.until is not None:
                deadline = max(0.0, min(deadline, self.until - time.monotonic()))
            return self._launch(spec, calls, deadline, {"alone": alone, "memory": bool(memory)})

    def fresh(
        self,
        *,
        isolate: bool = True,
        prelude: Sequence[tuple[str, str]] = (),
        limits: dict[str, int] | None = None,
        until: float | None = None,
        scratch_bytes: int = 64 << 20,
    ) -> Launcher:
        """A launcher whose fork server was forked from this one's, in milliseconds.

        With `isolate`, in new user, process, network, mount and IPC namespaces, with an empty
        /tmp of `scratch_bytes`; nothing started there outlives its `close`.

        Raises:
            SandboxError: the kernel refuses the namespaces.
        """
        with self._lock:
            self.start()
            limits = self.limits if limits is None else limits
            child = Launcher(trusted=self.trusted, limits=limits, prelude=prelude, until=until,
                             gpus=self.gpus)  # fmt: skip
            child._client = self._client.fresh(isolate, scratch_bytes)
            child.private = isolate and not limits.get("shared_files")
            child._keeps_warm, child._gpus = False, self._gpus
            return child

    def _launch(
        self, spec: dict[str, Any], calls: list[bytes], deadline: float, how: dict[str, bool]
    ) -> Run:
        """One team of ranks, from its request to its end."""
        team, members = self._take_team(spec)
        try:
            before = self._client.traffic() if self.network is not None else None
            self._request(members, calls, how)
            supervisor = self._supervisor(team, members, spec)
            run = supervisor.run(self._client.connection, deadline)
            if self.network is not None:
                run.traffic = self._client.traffic() - before
            return run
        finally:
            self._client.end_team(team, members)
            self._warm_up(spec)

    def _on(self, network: VirtualNetwork) -> Launcher:
        """The launcher whose ranks live on `network`; the last few are kept."""
        with self._lock:
            self.start()
            child = self._networks.pop(network, None)
            if child is None or not child._client.answers():
                options = {"limits": self.limits, "prelude": self.prelude, "until": self.until}
                child = Launcher(trusted=self.trusted, **options)
                child._client = self._client.fresh(isolate=False, network=network)
                child.network, child._keeps_warm, child._gpus = network, False, 0
            while len(self._networks) >= NETWORKS_KEPT:
                self._networks.pop(next(iter(self._networks))).close()
            self._networks[network] = child
            return child

    def start(self) -> None:
        """Start the fork server, unless it runs. It imports torch: a second or two."""
        if self._client is not None and not self._client.is_usable():
            self._warm.clear()
            self._networks.clear()
            self.close()
        if self._client is None:
            self._client = ForkClient.start(self.command)

    def close(self) -> None:
        """End every process this launcher started; return when they are gone."""
        with self._lock:
            for _, members in self._warm.values():
                for member in members:
                    member.close()
            self._warm.clear()
            for child in self._networks.values():
                child.close()
            self._networks.clear()
            if self._client is not None:
                self._client.close()
                self._client = None

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def why_no_gpus(self, limits: dict[str, int], isolate: bool) -> str | None:
        """None where ranks with these limits can use this launcher's GPUs, or it has none.

        Otherwise why not. It is tried, behind the walls of a question.
        """
        for ranks in self.gpus.trials if self.gpus else ():
            question = self.fresh(isolate=isolate, limits=limits)
            try:
                question.launch(on_gpu.probe, ranks, (self.gpus.count, limits["device_bytes"]))
            except LaunchError as error:
                return error.sentence
            finally:
                question.close()
        return None

    def _backend(self, backend: str, world_size: int) -> str:
        if self.gpus is not None and backend == "auto":
            try:
                return choose_backend(self.gpus.backend, world_size, self.gpus.count)
            except ValueError as error:  # not the fault of whoever asked for nothing
                raise LaunchError(str(error)) from None
        if self._gpus is None:
            self._gpus = self._client.count_gpus() if dist.is_nccl_available() else 0
        return choose_backend(backend, world_size, self._gpus)

    def _request(self, members: list[Member], calls: list[bytes], how: dict[str, bool]) -> None:
        """Give each rank its call, in a memory file that ranks with the same call share."""
        cells = json.dumps(self.prelude).encode()
        header = {"trusted": self.trusted, "path": None, "directory": ".", **how}
        if self.trusted:
            header.update(path=sys.path, directory=os.getcwd())
        files = {id(call): memory_file(cells, call) for call in calls}
        for member, call in zip(members, calls, strict=True):
            sections = {**header, "sections": [len(cells), len(call)]}
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died: see exits
                message = json.dumps(sections).encode()
                socket.send_fds(member.control, [message], [files[id(call)]])
        for file in files.values():
            os.close(file)

    def _supervisor(self, team: int, members: list[Member], spec: dict[str, Any]) -> Supervisor:
        audit = None
        if self.private and spec["backend"] == "gloo":
            audit = Audit(lambda: self._client.count(team), len(members), spec["setup"])
        return Supervisor(
            members,
            lambda: self._client.exits_of(team),
            lambda: self._client.dump_stacks(team),
            self.trusted,
            self.limits,
            audit,
            dict(self.prelude),
        )

    def _take_team(self, spec: dict[str, Any]) -> tuple[int, list[Member]]:
        team = self._warm.pop(_key(spec), None)
        if team is not None and not self._client.exits_of(team[0]):
            return team
        if team is not None:
            self._client.end_team(*team)
        return self._client.fork_team(spec)

    def _warm_up(self, spec: dict[str, Any]) -> None:
        """Fork the ranks that the next launch of this kind will use; they connect and wait."""
        if not self._keeps_warm or not spec["setup"] or _key(spec) in self._warm:
            return
        with contextlib.suppress(LaunchError):
            while len(self._warm) >= WARM_TEAMS:
                self._client.end_team(*self._warm.pop(next(iter(self._warm))))
            self._warm[_key(spec)] = self._client.fork_team(spec)


def _key(spec: dict[str, Any]) -> tuple:
    return (spec["world_size"], spec["backend"], spec["threads"], spec["setup"])
