"""One node's part in a launch: `python -m byhand.runtime.slurm.node FOLDER`, by srun on each."""

from __future__ import annotations

import os
import pickle
import select
import shutil
import socket
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from byhand.runtime.messages import message
from byhand.runtime.process import server
from byhand.runtime.process.forked import fork_server
from byhand.runtime.process.member import Member, send_calls
from byhand.runtime.slurm import epoch, placement

WRITTEN = ("log", "output", "stack")  # of a rank's files, while it runs
POLL_SECONDS = 0.05
MASTER_SECONDS = 60.0


class Node:
    """Forks this node's ranks, and writes down what they write and return."""

    def __init__(self, folder: Path, number: int):
        self.folder, self.number = folder, number
        spec, header, calls = pickle.loads((folder / "request").read_bytes())
        server.get_ready()
        self.client = fork_server()
        placed = placement(spec["world_size"], int(os.environ["SLURM_STEP_NUM_NODES"]))
        ranks = [rank for rank, node in enumerate(placed) if node == number]
        own, interface = own_address(os.environ["SLURM_LAUNCH_NODE_IPADDR"])
        environ = {"BYHAND_STORE": str(folder / "store"), "GLOO_SOCKET_IFNAME": interface}
        spec.update(ranks=ranks, address=self.master(own), environ=environ)
        self.team = self.client.fork_team(spec)
        self.members = self.team.members
        self.passed_on: dict[tuple[int, str], int] = {}  # bytes, by rank and file
        self.exits: dict[int, int] = {}
        send_calls(self.members, header, [calls[rank] for rank in ranks])

    def master(self, own: str) -> tuple[str, int]:
        """Node 0's address and a port that is free there; every node waits for it."""
        path = self.folder / "master"
        if self.number == 0:
            with socket.create_server(("", 0)) as free:
                port = free.getsockname()[1]
            path.with_suffix(".new").write_text(f"{own} {port}")
            path.with_suffix(".new").rename(path)
        until = time.monotonic() + MASTER_SECONDS
        while not path.exists() and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        address, port = path.read_text().split()
        return address, int(port)

    def serve(self) -> None:
        """Pass on what the ranks write and return, until standard input ends."""
        self.say("ready", None, (self.number, epoch()))
        while True:
            asked, _, _ = select.select([0], [], [], POLL_SECONDS)
            self.pass_on()
            if asked:
                if not os.read(0, 1 << 10):
                    return
                self.tell_stacks()

    def pass_on(self) -> None:
        """What the ranks wrote since the last look, and which of them ended."""
        exits = self.team.exits()
        for member in self.members:
            wake = received(member)
            for name in (
                ("log", "output", "stack", "result") if wake else ("log", "output", "stack")
            ):
                self.pass_on_file(
                    member, name
                )  # the result when it is whole, and all before the wake
            if wake:
                self.say("wake", member.rank, wake)
        for member in self.members:
            if member.rank in exits.keys() - self.exits.keys():
                self.say("exit", member.rank, (member.started(), exits[member.rank]))
        self.exits = exits

    def pass_on_file(self, member: Member, name: str) -> None:
        """What was written to one file of a rank since the last look."""
        at = self.passed_on.get((member.rank, name), 0)
        while data := read(member, name, at):
            self.say(name, member.rank, data)
            at += len(data)
        self.passed_on[member.rank, name] = at

    def tell_stacks(self) -> None:
        """Where each rank is, and the CPU seconds that each has used."""
        seconds = self.team.stacks()
        self.pass_on()
        self.say("stacks", None, seconds)

    def say(self, kind: str, rank: int | None, value: Any) -> None:
        """Write it at the end of this node's file, which is closed so that other nodes see it."""
        with open(self.folder / f"node.{self.number}", "ab") as file:
            file.write(message(pickle.dumps((kind, rank, value))))


def received(member: Member) -> bytes:
    """What a rank woke this process with, if it did, whatever it left unread."""
    try:
        return member.control.recv(1 << 10, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""
    except ConnectionError:
        member.has_its_call = False
        return b""


def read(member: Member, name: str, at: int) -> bytes:
    """Some of the bytes of a file of a rank, from `at` on."""
    if name == "log":
        return member.log_text(at)
    return os.pread(getattr(member, f"{name}_fd"), 1 << 20, at)


def own_address(other: str) -> tuple[str, str]:
    """This machine's address on the way to another, and the interface that has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((other, 9))  # nothing is sent
        own = probe.getsockname()[0]
    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address == own for address in addresses):
            return own, name
    return own, "lo"


def main() -> None:
    """Serve the folder that the command line names."""
    node = Node(Path(sys.argv[1]), int(os.environ["SLURM_NODEID"]))
    try:
        node.serve()
    finally:
        node.client.close()
        os.wait()  # for the fork server, which ends everything else first
        if node.number == 0:  # the notebook's process may be gone, and leave no folder either
            shutil.rmtree(node.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
