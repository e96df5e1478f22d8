"""The process from which every rank is forked: it imports torch once, and then only forks.

Started as `python -m byhand.runtime.process.server FD`, where FD is a socket to the notebook's
process. It is single-threaded, so forking is safe, and never touches CUDA, so its children may.
All that a rank leaves behind becomes this process's child (it is a subreaper) and is killed with
the rank's team; when the notebook's process is gone, its socket closes and everything ends.

Messages are JSON, one per packet:
    in   rank (4 descriptors), end, stacks, fresh (1 descriptor), devices, traffic
    out  hello, exit, ended, devices, cpu_seconds, traffic, failed
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
import traceback
from typing import Any

import torch
import torch.distributed as dist

from byhand.runtime.network import wires
from byhand.runtime.network.virtual import VirtualNetwork
from byhand.runtime.process import rank as rank_process
from byhand.runtime.process.teams import LOOK_SECONDS, Scales, Team
from byhand.runtime.process.tree import children_of, cpu_seconds, descendants_of
from byhand.runtime.trace import hooks
from byhand.runtime.walls import confined, namespaces
from byhand.runtime.walls.kernel_count import Counters

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NAME = 1, 36, 15
_libc = ctypes.CDLL(None, use_errno=True)
MAX_MESSAGE = 1 << 16


def prctl(option: int, value: int | bytes) -> None:
    """Set an attribute of this process."""
    _libc.prctl(option, value, 0, 0, 0)


class Server:
    """Forks ranks on request, reports their ends, and kills what they leave."""

    def __init__(
        self,
        connection: socket.socket,
        owns_namespace: bool = False,
        network: wires.Wires | None = None,
    ):
        self.connection = connection
        self.owns_namespace = owns_namespace
        self.network = network
        self.teams: dict[int, Team] = {}
        self.scales = Scales()
        self.wake_read, self.wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def serve(self) -> None:
        """Answer messages until the other side closes; then kill everything."""
        self.send({"hello": os.getpid()})
        selector = selectors.DefaultSelector()
        selector.register(self.connection, selectors.EVENT_READ)
        selector.register(self.wake_read, selectors.EVENT_READ)
        while True:
            bounded = any(team.most_bytes for team in self.teams.values())
            for key, _ in selector.select(LOOK_SECONDS if bounded else None):
                if key.fd == self.wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self.wake_read, 4096)
                    self.reap()
                elif not self.receive():
                    for team in list(self.teams):
                        self.end(team)
                    return
            self.weigh()

    def send(self, message: dict[str, Any]) -> None:
        """Send one message; nobody may be there to read it."""
        with contextlib.suppress(OSError):
            self.connection.send(json.dumps(message).encode())

    def receive(self) -> bool:
        """Answer one message. False when the other side has closed."""
        try:
            data, fds, _, _ = socket.recv_fds(self.connection, MAX_MESSAGE, 8)
        except ConnectionError:
            return False
        if not data:
            return False
        message = json.loads(data)
        try:
            getattr(self, "do_" + message["do"])(message, fds)
        except OSError as error:
            self.send({"failed": f"{type(error).__name__}: {error}", "team": message.get("team")})
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def do_rank(self, message: dict[str, Any], fds: list[int]) -> None:
        """Fork one rank of a team; the first one reserves the team's port."""
        team = self.teams.setdefault(message["team"], Team())
        team.prepare(message)
        port = team.port.getsockname()[1]

        def body() -> None:
            address = "127.0.0.1"
            if self.network is not None:
                address = self.network.address(0)
                self.network.join(message["rank"])
            rank_process.main(fds, message, (address, port), team.store)

        team.ranks[self.fork(body, fds)] = message["rank"]

    def do_fresh(self, message: dict[str, Any], fds: list[int]) -> None:
        """Fork a server like this one, in namespaces or on a network of its own if so asked."""
        team = self.teams.setdefault(message["team"], Team())

        def body() -> None:
            connection = socket.socket(fileno=os.dup(fds[0]))
            os.close(fds[0])
            network, inside = None, message["isolate"] or message["network"] is not None
            try:
                if message["isolate"]:
                    namespaces.enter(message["scratch_bytes"])
                elif confined.MARK in os.environ:
                    confined.own_folder()
                if message["network"] is not None:
                    network = wires.lay(VirtualNetwork(**message["network"]))
            except OSError as error:
                connection.send(json.dumps({"failed": str(error.strerror or error)}).encode())
                return
            if inside:
                prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            namespaces.trust_nobody(message["isolate"])
            Server(connection, inside, network).serve()

        team.ranks[self.fork(body, fds)] = 0

    def do_end(self, message: dict[str, Any], _: list[int]) -> None:
        """End a team, and say when it is gone."""
        self.end(message["team"])
        self.send({"ended": message["team"]})

    def do_stacks(self, message: dict[str, Any], _: list[int]) -> None:
        """Let each rank of a team write its Python stack; answer with the CPU seconds each used."""
        team = self.teams.get(message["team"], Team())
        seconds = {rank: cpu_seconds(pid) for pid, rank in team.ranks.items()}
        for pid in team.ranks:
            os.kill(pid, signal.SIGUSR1)
        self.send({"cpu_seconds": seconds, "team": message["team"]})

    def do_devices(self, message: dict[str, Any], _: list[int]) -> None:
        """Count the GPUs, in a child that may touch CUDA."""
        if not dist.is_nccl_available():
            return self.send({"devices": 0})
        pid = self.fork(lambda: os._exit(min(torch.cuda.device_count(), 255)), [])
        self.send({"devices": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])})

    def do_traffic(self, message: dict[str, Any], _: list[int]) -> None:
        """The byte counters of the network's ports so far."""
        self.send({"traffic": dataclasses.asdict(self.network.traffic())})

    def do_count(self, message: dict[str, Any], _: list[int]) -> None:
        """What the ranks of a team have sent each other so far, by the kernel's count."""
        team = self.teams[message["team"]]
        carried = dataclasses.asdict(Counters.read(team.store).since(team.before))
        self.send({"count": carried, "team": message["team"]})

    def fork(self, body: Any, keep: list[int]) -> int:
        """Fork a child that runs `body` with none of the server's descriptors but `keep`."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            signal.set_wakeup_fd(-1)
            namespaces.trust_nobody(False)
            for number in (signal.SIGCHLD, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            self.connection.close()
            os.close(self.wake_read)
            os.close(self.wake_write)
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def reap(self) -> None:
        """Collect children that ended, and report those that were ranks."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for number, team in self.teams.items():
                if pid in team.ranks:
                    rank = team.ranks.pop(pid)
                    code = os.waitstatus_to_exitcode(status)
                    self.send({"exit": code, "team": number, "rank": rank})

    def weigh(self) -> None:
        """Kill all ranks and what they started when they hold more memory than they may."""
        if any(self.scales.too_much(team) for team in self.teams.values()):
            for pid in [-1] if self.owns_namespace else descendants_of(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def end(self, number: int) -> None:
        """Kill the ranks of a team and all that they started; return when they are gone."""
        team = self.teams.pop(number, None)
        if team is None:
            return
        team.close()
        for pid in team.ranks:
            os.kill(pid, signal.SIGKILL)
        for pid in team.ranks:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        known = {pid for other in self.teams.values() for pid in other.ranks}
        until = time.monotonic() + 5
        while time.monotonic() < until and self.kill_orphans(known):
            time.sleep(0.001)

    def kill_orphans(self, known: set[int]) -> bool:
        """Kill every child that is not a rank of another team. False when there is none."""
        if self.owns_namespace and not known:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # everything in this namespace but its first process
            return self.collect(set())
        for pid in children_of(os.getpid()) - known:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return self.collect(known)

    def collect(self, known: set[int]) -> bool:
        """Wait for killed orphans. True when one was found, so that more may follow."""
        orphans = children_of(os.getpid()) - known if not self.owns_namespace or known else {-1}
        found = False
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
                found = True
        return found


def main() -> None:
    """Serve on the socket whose descriptor is the first argument."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    hooks.install()
    rank_process.rehearse()
    gc.collect()
    gc.freeze()  # a collection in a child then copies none of this process's memory
    Server(connection).serve()


if __name__ == "__main__":
    main()
