"""One node's part in a launch over several: started on each node by torchrun, it forks the ranks.

`python -m byhand.runtime.cluster_node PORT` connects to the notebook's process, whose address Slurm
gives, and forks a fork server like the one on a single machine. What that server's ranks write and
return goes to the notebook as it comes; when the connection ends, so does everything here.

Messages are tuples. From the notebook:
    clock · devices · reserve team · fork team spec · request team header cells calls
    stacks team · end team
To the notebook:
    hello node_id name address · clock seconds · devices n · ports team port port
    data team rank channel bytes · exit team rank code · stacks team seconds · ended team
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any

import torch

from byhand.runtime.process import rank as rank_process
from byhand.runtime.process import server as fork_server
from byhand.runtime.process.client import ForkClient
from byhand.runtime.process.member import Member
from byhand.runtime.process.request import memory_file
from byhand.runtime.trace import hooks
from byhand.runtime.trace.log import read_log

POLL_SECONDS = 0.02
KEY = "BYHAND_CLUSTER_KEY"
CHANNELS = ("log", "output", "stack")
PR_SET_PDEATHSIG = 1
_SIOCGIFADDR = 0x8915


@dataclass
class Team:
    """The ranks of one launch that live on this node."""

    number: int  # by which the fork server knows it
    members: dict[int, Member]
    running: bool = False
    sent: dict[tuple[int, str], int] = field(default_factory=dict)
    exits: dict[int, int] = field(default_factory=dict)


class Server(fork_server.Server):
    """A fork server whose teams have ranks on other nodes too, and meet at a store over TCP."""

    def do_rank(self, message: dict[str, Any], fds: list[int]) -> None:
        """Fork one rank."""
        team = self.teams.setdefault(message["team"], fork_server.Team())
        host, store_port, port = message["master"]
        ranks = message["ranks"]
        message["environ"] = {
            "LOCAL_RANK": str(ranks.index(message["rank"])),
            "LOCAL_WORLD_SIZE": str(len(ranks)),
            "BYHAND_STORE": f"tcp://{host}:{store_port}",
        }
        pid = self.fork(lambda: rank_process.main(fds, message, (host, port), -1), fds)
        team.ranks[pid] = message["rank"]


class Client(ForkClient):
    """Speaks to that server."""

    def fork_team(self, spec: dict[str, Any]) -> tuple[int, list[Member]]:
        """Fork the ranks spec["ranks"] of a team; they join the world if so asked, and wait."""
        self._teams += 1
        self._exits[self._teams] = {}
        members = []
        for rank in spec["ranks"]:
            member, fds = Member.create(rank)
            members.append(member)
            with fds[0]:
                self.send({"do": "rank", "team": self._teams, "rank": rank, **spec}, fds)
        return self._teams, members


class Node:
    """Relays between the notebook's process and this node's fork server."""

    def __init__(self, notebook: connection.Connection, server: Client):
        self.notebook = notebook
        self.server = server
        self.teams: dict[int, Team] = {}
        self.ports: dict[int, list[socket.socket]] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(notebook.fileno(), selectors.EVENT_READ)
        self.selector.register(server.connection, selectors.EVENT_READ)

    def serve(self) -> None:
        """Relay until the notebook's process closes the connection."""
        while True:
            running = any(team.running for team in self.teams.values())
            for key, _ in self.selector.select(POLL_SECONDS if running else None):
                if key.fd == self.notebook.fileno():
                    name, *arguments = self.notebook.recv()
                    getattr(self, "do_" + name)(*arguments)
                elif key.data is not None:
                    self.pass_on_reply(*key.data)
            self.pass_on_exits()
            for number, team in self.teams.items():
                if team.running:
                    self.pass_on_writings(number, team)

    def do_clock(self) -> None:
        """This machine's monotonic clock, from which its ranks' times are taken."""
        self.notebook.send(("clock", time.monotonic()))

    def do_devices(self) -> None:
        """How many GPUs there are."""
        self.notebook.send(("devices", None, self.server.count_gpus()))

    def do_reserve(self, number: int) -> None:
        """Keep two free ports for a team: for `setup`, and for a store of the ranks' own."""
        reserved = [socket.socket(), socket.socket()]
        for one in reserved:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("", 0))
        self.ports[number] = reserved
        self.notebook.send(("ports", number, *(one.getsockname()[1] for one in reserved)))

    def do_fork(self, number: int, spec: dict[str, Any]) -> None:
        """Fork the ranks spec["ranks"] of a team."""
        local, members = self.server.fork_team(spec)
        self.teams[number] = Team(local, {member.rank: member for member in members})
        for member in members:
            self.selector.register(member.control, selectors.EVENT_READ, (number, member))

    def do_request(self, number: int, header: dict, cells: bytes, calls: dict[int, bytes]) -> None:
        """Give each rank its call; equal calls share a memory file."""
        team = self.teams[number]
        team.running = True
        files = {id(call): memory_file(cells, call) for call in calls.values()}
        for rank, call in calls.items():
            message = json.dumps({**header, "sections": [len(cells), len(call)]}).encode()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died: see exits
                socket.send_fds(team.members[rank].control, [message], [files[id(call)]])
        for file in files.values():
            os.close(file)

    def do_stacks(self, number: int) -> None:
        """Pass on where each rank is, then the CPU seconds that each has used."""
        team = self.teams[number]
        seconds = self.server.dump_stacks(team.number)
        time.sleep(POLL_SECONDS)
        self.pass_on_writings(number, team)
        self.notebook.send(("stacks", number, seconds))

    def do_end(self, number: int) -> None:
        """Kill a team's ranks and all that they started; say when they are gone."""
        team = self.teams.pop(number, None)
        if team is not None:
            for member in team.members.values():
                with contextlib.suppress(KeyError):
                    self.selector.unregister(member.control)
            self.server.end_team(team.number, list(team.members.values()))
        for reserved in self.ports.pop(number, ()):
            reserved.close()
        self.notebook.send(("ended", number))

    def pass_on_reply(self, number: int, member: Member) -> None:
        """Some of what a rank returns, after all that it wrote before."""
        try:
            data = member.control.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            self.selector.unregister(member.control)
        self.pass_on_writings(number, self.teams[number])
        self.notebook.send(("data", number, member.rank, "reply", data))

    def pass_on_writings(self, number: int, team: Team) -> None:
        """What the ranks logged and printed since the last look, and their stacks."""
        for rank, member in team.members.items():
            for channel in CHANNELS:
                fd, at = getattr(member, f"{channel}_fd"), team.sent.get((rank, channel), 0)
                read = read_log if channel == "log" else _read
                while data := read(fd, at, 1 << 20):
                    at += len(data)
                    self.notebook.send(("data", number, rank, channel, data))
                team.sent[rank, channel] = at

    def pass_on_exits(self) -> None:
        """Which ranks have ended."""
        for number, team in self.teams.items():
            now = self.server.exits_of(team.number)
            for rank in now.keys() - team.exits.keys():
                self.pass_on_writings(number, team)
                self.notebook.send(("exit", number, rank, now[rank]))
            team.exits = dict(now)


def _read(fd: int, at: int, most: int) -> bytes:
    return os.pread(fd, most, at)


def interface_of(address: str) -> str:
    """The network interface that has this address of ours; "lo" when none has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = array.array("B", name.encode().ljust(256, b"\0"))
            with contextlib.suppress(OSError):  # an interface without an address
                fcntl.ioctl(probe, _SIOCGIFADDR, request)
                if socket.inet_ntoa(request.tobytes()[20:24]) == address:
                    return name
    return "lo"


def address_of(link: connection.Connection) -> str:
    """Our own address on the way to the other side."""
    with socket.socket(fileno=os.dup(link.fileno())) as copy:
        return copy.getsockname()[0]


def fork_a_server(notebook: connection.Connection) -> Client:
    """A fork server forked from this process; it ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        try:
            fork_server.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            ours.close()
            notebook.close()
            Server(theirs).serve()
        finally:
            os._exit(0)
    theirs.close()
    client = Client(ours)
    client.expect("hello", 10.0)
    return client


def main() -> None:
    """Serve the notebook's process at the port that the command line gives."""
    address = (os.environ["SLURM_LAUNCH_NODE_IPADDR"], int(sys.argv[1]))
    notebook = connection.Client(address, authkey=bytes.fromhex(os.environ.pop(KEY)))
    own = address_of(notebook)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", interface_of(own))
    os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)  # ranks open stores of their own
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.set_num_threads(1)
    hooks.install()
    rank_process.rehearse()
    server = fork_a_server(notebook)
    name = os.environ.get("SLURMD_NODENAME", socket.gethostname())
    notebook.send(("hello", int(os.environ["SLURM_NODEID"]), name, own))
    with contextlib.suppress(EOFError, ConnectionError):
        Node(notebook, server).serve()
    server.close()


if __name__ == "__main__":
    main()
