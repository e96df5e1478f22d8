"""The notebook's side of ranks on several nodes: speaks to the nodes as to one fork server.

It has the methods of ForkClient that a Launcher uses. The nodes are started in the Slurm
allocation that this process is in, by one srun that runs torchrun on each; they stay until
`close`, so that a launch costs milliseconds and not the seconds in which torch is imported.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from byhand.runtime.cluster_start import Allocation, Step
from byhand.runtime.errors import LaunchError
from byhand.runtime.remote_member import RemoteMember

ANSWER_SECONDS = 15.0
DEVICES_SECONDS = 120.0


class Node:
    """One node: its connection, and how far its clock is ahead of ours."""

    def __init__(self, connection: Connection):
        self.connection = connection
        _, self.number, self.name, self.address = connection.recv()
        self.ahead = self._clock_ahead()
        self.lost = False
        self.answers: queue.Queue[tuple] = queue.Queue()

    def _clock_ahead(self) -> float:
        """From the quickest of a few questions; a difference too small to tell counts as none."""
        tries = []
        for _ in range(5):
            asked = time.monotonic()
            self.connection.send(("clock",))
            _, there = self.connection.recv()
            answered = time.monotonic()
            tries.append((answered - asked, there - (asked + answered) / 2))
        round_trip, ahead = min(tries)
        return ahead if abs(ahead) > round_trip else 0.0


class ClusterClient:
    """The nodes of one allocation, and the teams of ranks on them."""

    def __init__(self, step: Step, connections: list[Connection]):
        self.step = step
        self.owner = os.getpid()
        self.nodes = sorted(map(Node, connections), key=lambda node: node.number)
        self.connection, self._wake = socket.socketpair()
        self.connection.setblocking(False)
        self._teams = 0
        self._members: dict[int, list[RemoteMember]] = {}
        self._exits: dict[int, dict[int, int]] = {}
        for node in self.nodes:
            threading.Thread(target=self._listen, args=(node,), daemon=True).start()

    @classmethod
    def start(cls, allocation: Allocation) -> ClusterClient:
        """Start every node of the allocation. It takes as long as importing torch twice.

        Raises:
            LaunchError: a node did not come; the message ends with srun's last words.
        """
        step = Step(allocation)
        try:
            return cls(step, step.connections())
        except (EOFError, OSError):
            words = step.last_words()
            step.close(at_once=True)
            raise LaunchError(f"a node of the allocation was lost at its start; {words}") from None
        except BaseException:
            step.close(at_once=True)
            raise

    def is_usable(self) -> bool:
        """Whether all nodes are there still, and belong to this process and not to its parent."""
        return self.owner == os.getpid() and not any(node.lost for node in self.nodes)

    def close(self) -> None:
        """End the nodes' processes; return when they are gone."""
        lost = not self.is_usable()
        for node in self.nodes:
            with contextlib.suppress(OSError):  # wakes the thread that listens, too
                _shut(node.connection)
        if self.owner == os.getpid():
            self.step.close(at_once=lost)
        self.connection.close()

    def fork_team(self, spec: dict[str, Any]) -> tuple[int, list[RemoteMember]]:
        """Fork the ranks of a team, the first on the first node; they join the world, and wait."""
        self._teams += 1
        team, placed = self._teams, placement(spec["world_size"], len(self.nodes))
        self._members[team] = [self._member(rank, node) for rank, node in enumerate(placed)]
        self._exits[team] = {}
        [(_, _, *ports)] = self._ask("ports", ANSWER_SECONDS, team, [0], ("reserve", team))
        spec = {**spec, "master": [self.nodes[0].address, *ports]}
        for number in sorted(set(placed)):
            ranks = [rank for rank, node in enumerate(placed) if node == number]
            self._send(self.nodes[number], ("fork", team, {**spec, "ranks": ranks}))
        return team, self._members[team]

    def request(
        self, members: list[RemoteMember], header: dict[str, Any], cells: bytes, calls: list[bytes]
    ) -> None:
        """Give each rank of a team its call."""
        team = next(team for team, known in self._members.items() if known is members)
        for node in {id(member.node): member.node for member in members}.values():
            mine = {m.rank: calls[m.rank] for m in members if m.node is node}
            self._send(node, ("request", team, header, cells, mine))

    def exits_of(self, team: int) -> dict[int, int]:
        """{rank: exit code} of the team's ranks that have ended.

        Raises:
            LaunchError: a node is gone, and its ranks with it.
        """
        with contextlib.suppress(BlockingIOError):
            while self.connection.recv(1 << 12):
                pass
        self._check_nodes()
        return dict(self._exits[team])

    def dump_stacks(self, team: int) -> dict[int, float]:
        """Let a team's ranks write their stacks; the CPU seconds that each has used."""
        numbers = self._numbers(team)
        answers = self._ask("stacks", ANSWER_SECONDS, team, numbers, ("stacks", team))
        return {rank: used for _, _, seconds in answers for rank, used in seconds.items()}

    def end_team(self, team: int, members: list[RemoteMember]) -> None:
        """Kill a team and everything it started; return when it is gone."""
        for member in members:
            member.close()
        with contextlib.suppress(LaunchError):
            numbers = self._numbers(team) | {0}
            self._ask("ended", ANSWER_SECONDS, team, numbers, ("end", team))
        self._members.pop(team, None)
        self._exits.pop(team, None)

    def count_gpus(self) -> int:
        """GPUs of the node that has the fewest."""
        numbers = range(len(self.nodes))
        answers = self._ask("devices", DEVICES_SECONDS, None, numbers, ("devices",))
        return min(count for _, _, count in answers)

    def _member(self, rank: int, number: int) -> RemoteMember:
        member, (wake, *_) = RemoteMember.create(rank)
        wake.setblocking(False)
        member.attach(self.nodes[number], self.nodes[number].ahead, wake)
        return member

    def _numbers(self, team: int) -> set[int]:
        return {member.node.number for member in self._members.get(team, ())}

    def _ask(
        self, kind: str, seconds: float, team: int | None, numbers: Any, message: tuple
    ) -> list[tuple]:
        """Send a message to some nodes; their answers of this kind for this team."""
        nodes = [self.nodes[number] for number in numbers]
        for node in nodes:
            self._send(node, message)
        until = time.monotonic() + seconds
        return [self._answer(node, kind, team, until) for node in nodes]

    def _answer(self, node: Node, kind: str, team: int | None, until: float) -> tuple:
        while True:
            try:
                answer = node.answers.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise LaunchError(f"node {node.name} does not answer") from None
            if answer[0] == "lost":
                self._check_nodes()
            if answer[:2] == (kind, team):
                return answer

    def _send(self, node: Node, message: tuple) -> None:
        try:
            node.connection.send(message)
        except OSError:
            node.lost = True
            self._check_nodes()

    def _check_nodes(self) -> None:
        lost = [node.name for node in self.nodes if node.lost]
        if lost:
            words = self.step.last_words()
            raise LaunchError(f"lost node {', '.join(lost)} of the allocation; {words}")

    def _listen(self, node: Node) -> None:
        """What one node sends, until it closes: the thread of this node."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = node.connection.recv()
                self._take(node, *message)
        node.lost = True
        node.answers.put(("lost", None))
        self._wake_up()

    def _take(self, node: Node, kind: str, team: int, *rest: Any) -> None:
        if kind == "data":
            rank, channel, data = rest
            for member in self._members.get(team, ())[rank : rank + 1]:
                member.feed(channel, data)
        elif kind == "exit":
            rank, code = rest
            self._exits.get(team, {})[rank] = code
            self._wake_up()
        else:
            node.answers.put((kind, team, *rest))

    def _wake_up(self) -> None:
        with contextlib.suppress(OSError):
            self._wake.send(b".", socket.MSG_DONTWAIT)


def placement(world_size: int, num_nodes: int) -> list[int]:
    """The node of each rank: neighbours together, as many on each node as on the others, or 1 more.

    >>> placement(5, 2)
    [0, 0, 0, 1, 1]
    """
    each, more = divmod(world_size, num_nodes)
    return [node for node in range(num_nodes) for _ in range(each + (node < more))]


def _shut(connection: Connection) -> None:
    with socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
