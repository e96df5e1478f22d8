"""`launch`: run a function on fresh processes, one per rank, and get back what each returned."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import torch.distributed as dist

from byhand.runtime import sources
from byhand.runtime.errors import LaunchError, SandboxError
from byhand.runtime.process_group import choose_backend
from byhand.runtime.run import Run
from byhand.runtime.supervise import Member, Supervisor, read_all
from byhand.runtime.trace import RankLog

START_SECONDS = 120.0
WARM_TEAMS = 2


class PerRank:
    """An argument of which rank r gets only item r."""

    def __init__(self, items: Sequence[Any]):
        self.items = list(items)


class Launcher:
    """Starts ranks from one fork server; closing it leaves no process behind.

    `command` is put before the fork server's own (a sandbox). With `trusted=False` results come
    back only as plain data and tensors, through the codec. `limits` bound each rank:
    memory_bytes, processes, file_bytes, open_files, cpu_seconds, output_bytes, reply_bytes.
    `prelude` are (label, source) cells run on each rank first. No launch outlasts `until`, a
    time.monotonic() moment.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        trusted: bool = True,
        limits: dict[str, int] | None = None,
        prelude: Sequence[tuple[str, str]] = (),
        environ: dict[str, str] | None = None,
        until: float | None = None,
    ):
        self.command = list(command)
        self.trusted = trusted
        self.limits = dict(limits or {})
        self.prelude = [list(cell) for cell in prelude]
        self.environ = dict(environ or {})
        self.until = until
        self._keeps_warm = True
        self._parent: tuple[Launcher, int] | None = None
        self._process: subprocess.Popen | None = None
        self._socket: socket.socket | None = None
        self._teams = 0
        self._warm: dict[tuple, tuple[int, list[Member]]] = {}
        self._exits: dict[int, dict[int, int]] = {}
        self._gpus: int | None = None
        self._lock = threading.RLock()
        self._owner = os.getpid()
        for label, source in self.prelude:
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
        network: None = None,
        setup: bool = True,
        alone: bool = False,
    ) -> Run:
        """Run `fn(rank, world_size, *args)` on `world_size` fresh ranks; see byhand.launch."""
        _check_arguments(fn, world_size, args, deadline, threads_per_rank, network)
        with self._lock:
            self.start()
            spec = {
                "world_size": world_size,
                "threads": threads_per_rank,
                "setup": setup,
                "backend": self._backend(backend, world_size),
                "limits": self.limits,
            }
            requests = self._requests(fn, world_size, args, alone)
            if self.until is not None:
                deadline = max(0.0, min(deadline, self.until - time.monotonic()))
            team, members = self._take_team(spec)
            try:
                for member, (header, payload) in zip(members, requests, strict=True):
                    with contextlib.suppress(BrokenPipeError):  # it died: the supervisor tells
                        socket.send_fds(member.control, [header], [payload])
                watch = Supervisor(
                    members,
                    lambda: self._exits_of(team),
                    lambda: self._send({"do": "stacks", "team": team}),
                    self.trusted,
                    self.limits,
                )
                return watch.run(self._socket, deadline)
            finally:
                for payload in {payload for _, payload in requests}:
                    os.close(payload)
                self._end(team, members)
                if self._keeps_warm:
                    self._warm_up(spec)

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
            child = Launcher(
                self.command,
                trusted=self.trusted,
                limits=limits or self.limits,
                prelude=prelude,
                environ=self.environ,
                until=until,
            )
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._teams += 1
            child._parent, child._socket, child._keeps_warm = (self, self._teams), ours, False
            message = {
                "do": "fresh",
                "team": self._teams,
                "isolate": isolate,
                "scratch_bytes": scratch_bytes,
            }
            self._send(message, [theirs])
            theirs.close()
            try:
                child._expect("hello", START_SECONDS)
            except LaunchError:
                child.close()
                raise SandboxError(
                    "the kernel refuses fresh namespaces for a question; its "
                    f"words: {self._stderr()}"
                ) from None
            return child

    def start(self) -> None:
        """Start the fork server, unless it runs. The first start imports torch: a second or two."""
        if self._owner != os.getpid():  # a fork of the process that made this launcher
            self._owner, self._socket, self._process, self._warm = os.getpid(), None, None, {}
        if self._parent is not None:
            return
        if self._process is not None and self._process.poll() is None:
            return
        self._abandon()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket, self._errors = ours, os.memfd_create("byhand errors")
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
        command = [*self.command, sys.executable, "-m", "byhand.runtime.fork_server"]
        self._process = subprocess.Popen(
            [*command, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": path},
        )
        theirs.close()

    def close(self) -> None:
        """End every process this launcher started; return when they are gone."""
        with self._lock:
            for _, members in self._warm.values():
                for member in members:
                    member.close()
            self._warm.clear()
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            if self._parent is not None:
                parent, number = self._parent
                self._parent = None
                if parent._socket is not None:
                    parent._end(number, [])
            elif self._process is not None:
                self._stop_process()

    def _stop_process(self) -> None:
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._errors)
        self._process = None

    def _abandon(self) -> None:
        """Forget a fork server that ended by itself."""
        if self._socket is not None:
            self.close()
        self._exits.clear()

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _backend(self, backend: str, world_size: int) -> str:
        if self._gpus is None:
            self._gpus = 0
            if dist.is_nccl_available() and self._parent is None:
                self._send({"do": "devices"})
                self._gpus = self._expect("devices", START_SECONDS)["devices"]
        return choose_backend(backend, world_size, self._gpus)

    def _requests(
        self, fn: Any, world_size: int, args: Sequence[Any], alone: bool
    ) -> list[tuple[bytes, int]]:
        """One (header, memory file) per rank; ranks share the file if their arguments are equal."""
        header = {
            "trusted": self.trusted,
            "path": sys.path,
            "directory": os.getcwd(),
            "environ": self.environ,
            "alone": alone,
        }
        if not self.trusted:
            header.update(path=None, directory="/tmp")  # a sandbox has its own sys.path
        cells = json.dumps(self.prelude).encode()
        shared = not any(isinstance(arg, PerRank) for arg in args)
        requests: list[tuple[bytes, int]] = []
        for rank in range(world_size):
            if shared and requests:
                requests.append(requests[0])
                continue
            own = tuple(arg.items[rank] if isinstance(arg, PerRank) else arg for arg in args)
            call = _pickle(fn, own)
            payload = os.memfd_create("byhand request")
            for part in (cells, call):
                _write_all(payload, part)
            sections = {**header, "sections": [len(cells), len(call)]}
            requests.append((json.dumps(sections).encode(), payload))
        return requests

    def _take_team(self, spec: dict[str, Any]) -> tuple[int, list[Member]]:
        self._drain()
        team = self._warm.pop(_key(spec), None)
        if team is not None and not self._exits.get(team[0]):
            return team
        if team is not None:
            self._end(*team)
        return self._fork_team(spec)

    def _warm_up(self, spec: dict[str, Any]) -> None:
        """Fork the ranks that the next launch of this kind will use; they connect and wait."""
        if spec["setup"] and _key(spec) not in self._warm:
            while len(self._warm) >= WARM_TEAMS:
                self._end(*self._warm.pop(next(iter(self._warm))))
            with contextlib.suppress(LaunchError):
                self._warm[_key(spec)] = self._fork_team(spec)

    def _fork_team(self, spec: dict[str, Any]) -> tuple[int, list[Member]]:
        self._teams += 1
        team, members = self._teams, []
        self._exits[team] = {}
        for rank in range(spec["world_size"]):
            ours, theirs = socket.socketpair()
            fds = [os.memfd_create(f"byhand {name} {rank}") for name in ("log", "output", "stack")]
            members.append(Member(rank, ours, *fds, RankLog(rank)))
            with theirs:
                self._send({"do": "rank", "team": team, "rank": rank, **spec}, [theirs, *fds])
        return team, members

    def _end(self, team: int, members: list[Member]) -> None:
        """Kill a team and everything it started; return when it is gone."""
        for member in members:
            member.close()
        with contextlib.suppress(LaunchError):
            self._send({"do": "end", "team": team})
            self._expect("ended", 15.0, team)
        self._exits.pop(team, None)

    def _send(self, message: dict[str, Any], fds: Sequence[Any] = ()) -> None:
        numbers = [fd if isinstance(fd, int) else fd.fileno() for fd in fds]
        try:
            socket.send_fds(self._socket, [json.dumps(message).encode()], numbers)
        except OSError as error:
            raise SandboxError(f"the fork server is gone ({error}); {self._stderr()}") from None

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(1 << 16)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError:
            data = b""
        if not data:
            raise SandboxError(f"the fork server ended by itself; {self._stderr()}")
        message = json.loads(data)
        if "exit" in message and message["team"] in self._exits:
            self._exits[message["team"]][message["rank"]] = message["exit"]
        return message

    def _expect(self, kind: str, seconds: float, team: int | None = None) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            message = self._receive(left)
            if message is None:
                break
            if "failed" in message:
                raise SandboxError(f"the fork server could not: {message['failed']}")
            if kind in message and team in (None, message.get(kind)):
                return message
        raise SandboxError(f"the fork server said no {kind!r} within {seconds:.0f} s")

    def _drain(self) -> None:
        """Take in what the fork server has said in the meantime."""
        while self._receive(0.0) is not None:
            pass

    def _exits_of(self, team: int) -> dict[int, int]:
        self._drain()
        return self._exits[team]

    def _stderr(self) -> str:
        owner = self if self._parent is None else self._parent[0]
        if owner._process is None:
            return "it was not started"
        with contextlib.suppress(subprocess.TimeoutExpired):
            owner._process.wait(timeout=0.2)
        text = read_all(owner._errors, 1 << 16).decode(errors="replace").strip()
        return f"its last words: {text[-2000:]}" if text else "it said nothing"


def _key(spec: dict[str, Any]) -> tuple:
    return (spec["world_size"], spec["backend"], spec["threads"], spec["setup"])


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _check_arguments(
    fn: Any, world_size: Any, args: Any, deadline: Any, threads: Any, network: Any
) -> None:
    if "BYHAND_WORLD_SIZE" in os.environ:
        raise LaunchError("launch was called on a rank; only the notebook starts ranks")
    if not callable(fn):
        raise ValueError(f"launch runs a function; {fn!r} is a {type(fn).__name__}")
    for name, value in (("world_size", world_size), ("threads_per_rank", threads)):
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} is a whole number of at least 1, not {value!r}")
    if not isinstance(args, (list, tuple)):
        raise ValueError(
            f"args is a tuple of arguments, not a {type(args).__name__}; "
            "for one argument x write args=(x,)"
        )
    if not isinstance(deadline, (int, float)) or isinstance(deadline, bool) or deadline <= 0:
        raise ValueError(f"deadline is a positive number of seconds, not {deadline!r}")
    if network is not None:
        raise ValueError(f"network is None: ranks talk over loopback; not {network!r}")
    for position, arg in enumerate(args):
        if isinstance(arg, PerRank) and len(arg.items) != world_size:
            raise ValueError(
                f"argument {position} has {len(arg.items)} items for {world_size} "
                "ranks: PerRank takes one per rank"
            )


def _pickle(fn: Any, args: tuple) -> bytes:
    """The call as bytes.

    Raises:
        ValueError: the function or an argument cannot travel to another process; says which.
    """
    try:
        return cloudpickle.dumps((fn, args))
    except Exception as whole:
        for position, arg in enumerate(args):
            try:
                cloudpickle.dumps(arg)
            except Exception as error:
                raise ValueError(
                    f"argument {position}, a {type(arg).__name__}, cannot travel to "
                    f"another process: {error}"
                ) from None
        name = getattr(fn, "__name__", repr(fn))
        raise ValueError(
            f"the function {name} cannot travel to another process: {whole}. It "
            "carries the notebook's names that it uses; pass plain data instead"
        ) from None


_default: Launcher | None = None


def default_launcher() -> Launcher:
    """The launcher that `launch` and `call` use; made at first need."""
    global _default
    if _default is None:
        _default = Launcher()
        atexit.register(_default.close)
    return _default


def shutdown() -> None:
    """End the fork server that `launch` uses, and all its processes; the next launch starts anew."""
    if _default is not None:
        _default.close()


def set_default(launcher: Launcher | None) -> Launcher | None:
    """Let `launch` and `call` use this launcher from now on; returns the one used so far."""
    global _default
    before, _default = _default, launcher
    return before


def launch(
    fn: Callable[..., Any],
    world_size: int,
    args: Sequence[Any] = (),
    *,
    backend: str = "auto",
    deadline: float = 60.0,
    threads_per_rank: int = 1,
    network: None = None,
    setup: bool = True,
) -> Run:
    """Run `fn(rank, world_size, *args)` on `world_size` fresh processes, one per rank.

    The function and its arguments travel by value, so both may come from a notebook cell. An
    argument PerRank([a, b, ...]) gives rank r only item r. With `setup`, each rank has joined the
    default process group before `fn` begins; without, `fn` calls setup and cleanup itself.
    `backend`: "auto", "gloo" or "nccl". No process outlives the call.

    Raises:
        ValueError: an argument makes no sense, or cannot travel; the message says which and why.
        RankError: a rank raised, or its process died. DeadlockError: the ranks' calls do not fit
            together. DeadlineError: ranks still run after `deadline` seconds.
    """
    return default_launcher().launch(
        fn,
        world_size,
        args,
        backend=backend,
        deadline=deadline,
        threads_per_rank=threads_per_rank,
        network=network,
        setup=setup,
    )


def call(fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(*args)` in one fresh process; its value. Raises as `launch` does."""
    return default_launcher().launch(fn, 1, args, setup=False, alone=True).results[0]
