"""The wires of a virtual network: namespaces, a switch, veth pairs and their rates.

A forked fork server enters namespaces of its own (user, process, network, mount), where it may do
what an administrator may, makes one network namespace per host, and puts each rank that it forks
into its host's. iproute2's `ip` and `tc` lay the wires.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from byhand.runtime.network.virtual import Bytes, Traffic, VirtualNetwork
from byhand.runtime.process.place import Place
from byhand.runtime.walls import namespaces

MTU = 9000  # bytes in a packet, as in a data centre: headers are then 0.7 % of what is carried
_PATH = os.pathsep.join(filter(None, [os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
_QUEUE_SECONDS = 1.0  # what may wait for a link: like a cluster's, it drops next to nothing,
_QUEUE_BYTES = 1_000_000  # and so it holds what a few connections have under way, however slow
_BURST_SECONDS = 0.001  # of what it missed in a pause, a link makes up for so much,
_PEAK = 1.25  # going at this many times its rate meanwhile
_AT_ONCE_SECONDS = 0.0003  # and lets so much pass at once: a timer may be late by that
_UNDER_WAY_SECONDS = 0.004  # of a connection's bytes: so much at most is in a link's queue,
_UNDER_WAY_BYTES = 1 << 16  # or so many bytes
_FRAME_BYTES = MTU + 64  # it lets one frame through, however slow it is


@dataclass
class Wires(Place):
    """Where the ranks of a VirtualNetwork live; once it stands, descriptors of its namespaces."""

    network: VirtualNetwork
    switch: int = -1
    hosts: list[int] = field(default_factory=list)
    isolate = True
    address = "10.0.0.1"

    def backend(self, backend: str, world_size: int) -> str:
        """In the notebook: gloo, unless the launch asks for another by name."""
        return "gloo" if backend == "auto" else super().backend(backend, world_size)

    def counted(self, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
        """As a place does."""
        pairs = zip(before["hosts"], after["hosts"], strict=True)
        hosts = [Bytes(now[0] - then[0], now[1] - then[1]) for then, now in pairs]
        return {"traffic": Traffic(hosts)}

    def enter(self) -> Wires:
        """In a forked fork server: move to fresh namespaces, lay the wires, stay on the switch.

        Raises:
            OSError: the kernel refuses, or a tool fails; the message says which step.
        """
        namespaces.enter_as_administrator()
        self.switch = namespaces.own_network()
        self.hosts = [namespaces.new_network() for _ in range(self.network.hosts)]
        namespaces.set_network(self.switch)
        _run("ip", [f"link add br0 mtu {MTU} type bridge", *_up("br0")])
        for host, namespace in enumerate(self.hosts):
            near, far = f"host{host}", f"name eth0 mtu {MTU} netns /proc/self/fd/{namespace}"
            cable = f"link add {near} mtu {MTU} type veth peer {far}"
            _run("ip", [cable, *_up(near, "master br0")])
            _run("tc", [_rate(self.network, near)])
            namespaces.set_network(namespace)
            _run("ip", [f"link set lo mtu {MTU} up", *_addressed(self.network, host)])
            _run("tc", [_rate(self.network, "eth0")])
            _suit_tcp(self.network)
            namespaces.set_network(self.switch)
        return self

    def count(self) -> dict[str, list[tuple[int, int]]]:
        """In the fork server: bytes sent and received so far, by host: what came in at the switch
        was sent."""
        ports = psutil.net_io_counters(pernic=True, nowrap=False)
        ends = [ports[f"host{host}"] for host in range(self.network.hosts)]
        return {"hosts": [(port.bytes_recv, port.bytes_sent) for port in ends]}

    def close_in(self, rank: int, world_size: int) -> None:
        """On a rank: move to its host, for good and without privileges."""
        namespaces.set_network(self.hosts[self.network.host(rank)])
        os.environ.update(GLOO_SOCKET_IFNAME="eth0", TP_SOCKET_IFNAME="eth0")  # TP: for RPC
        for descriptor in (self.switch, *self.hosts):
            os.close(descriptor)
        namespaces.drop_privileges()


def _up(name: str, options: str = "") -> list[str]:
    """Lines that bring an interface up, without the chatter of IPv6."""
    return [f"link set dev {name} addrgenmode none", f"link set dev {name} {options} up"]


def _addressed(network: VirtualNetwork, host: int) -> list[str]:
    """Lines that give a host its address and let it send by TCP's oldest rule, in every kernel.

    That fills a link until it drops something. Others probe for the rate, or slow down as a queue
    grows: as some machines are set, a single message would take up to 1.4 times as long. Over a
    slow link, nothing counts as lost before the longest queue is through.
    """
    address = f"10.0.0.{host + 1}"
    rule = f"10.0.0.0/24 dev eth0 src {address} scope link congctl reno"
    if (seconds := _queue_seconds(network)) > _QUEUE_SECONDS:
        rule += f" rto_min {1000 * seconds:.0f}ms"
    return [f"addr add {address}/24 dev eth0", *_up("eth0"), f"route replace {rule}"]


def _queue_seconds(network: VirtualNetwork) -> float:
    return max(_QUEUE_SECONDS, _QUEUE_BYTES / network.bytes_per_second)


def _suit_tcp(network: VirtualNetwork) -> None:
    """Have this namespace's TCP send nothing a second time: here nothing is lost, only late.

    An answer that waits in a queue, or packets that overtake each other between the machine's
    cores, look like a loss. And have it send no more than a little before an answer: else a
    message fills the link's queue, and the answers to another, which comes the other way, wait
    behind it, so that the two take turns.
    """
    most = max(_UNDER_WAY_BYTES, int(network.bytes_per_second * _UNDER_WAY_SECONDS))
    rules = {"early_retrans": 0, "recovery": 0, "reordering": 300, "rmem": f"4096 {most} {most}"}
    for name, value in rules.items():
        with contextlib.suppress(OSError):  # a container may forbid it: then a few go twice
            Path(f"/proc/sys/net/ipv4/tcp_{name}").write_text(str(value))


def _rate(network: VirtualNetwork, name: str) -> str:
    rate = network.bytes_per_second
    burst, at_once = (max(_FRAME_BYTES, int(rate * s)) for s in (_BURST_SECONDS, _AT_ONCE_SECONDS))
    latency = f"latency {1000 * _queue_seconds(network):.0f}ms"
    shape = f"rate {8 * rate:.0f}bit burst {burst} {latency}"
    peak = f"peakrate {8 * _PEAK * rate:.0f}bit mtu {at_once}"
    return f"qdisc add dev {name} root tbf {shape} {peak}"


def _run(tool: str, lines: list[str]) -> None:
    """Run lines of `ip` or `tc` in this process's network namespace."""
    if (program := shutil.which(tool, path=_PATH)) is None:
        raise OSError(f"the program {tool} is missing: apt-get install iproute2 (as root)")
    done = subprocess.run(
        [program, "-batch", "-"],
        input="\n".join([*lines, ""]),
        capture_output=True,
        text=True,
        close_fds=False,
        env={"PATH": _PATH},
        check=False,
    )
    if done.returncode:
        words = " ".join(done.stderr.split())
        raise OSError(f"{tool} could not lay the wires: {words}")
