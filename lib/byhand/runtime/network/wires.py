"""The wires of a virtual network: namespaces, bridges, veth pairs and their rates.

A forked fork server enters namespaces of its own (user, process, network), where it may do what an
administrator may, makes one network namespace per host and per rank, and puts each rank that it
forks into its own. iproute2's `ip` and `tc` lay the wires.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from byhand.runtime.walls import namespaces

MTU = 9000  # bytes in a packet, as in a data centre: headers are then 0.7 % of what is carried
_PATH = os.pathsep.join(filter(None, [os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
_LATENCY_SECONDS = 1.0  # what may wait for a link: like a cluster's, it drops next to nothing
_BURST_SECONDS = 0.001  # of what it missed in a pause, a link makes up for so much,
_PEAK = 1.25  # going at this many times its rate meanwhile
_AT_ONCE_SECONDS = 0.0003  # and lets so much pass at once: a timer may be late by that
_UNDER_WAY_SECONDS = 0.004  # of a connection's bytes: so much at most is in a link's queue,
_UNDER_WAY_BYTES = 1 << 16  # or so many bytes
_FRAME_BYTES = MTU + 64  # it lets one frame through, however slow it is


def why_no_tools() -> str | None:
    """None where `ip` and `tc` are installed, else one sentence."""
    missing = [name for name in ("ip", "tc") if not shutil.which(name, path=_PATH)]
    if not missing:
        return None
    words = "programs ip and tc are" if missing[1:] else f"program {missing[0]} is"
    return f"the {words} missing: apt-get install iproute2 (as root)"


@dataclass
class Wires:
    """A VirtualNetwork that stands: descriptors of its network namespaces."""

    network: Any
    switch: int
    hosts: list[int]
    ranks: list[int]

    def address(self, rank: int) -> str:
        """The IPv4 address of a rank."""
        return f"10.0.{self.network.host(rank)}.{rank % self.network.ranks_per_host + 1}"

    def join(self, rank: int) -> None:
        """Move this process to the rank's namespace, for good and without privileges."""
        namespaces.set_network(self.ranks[rank])
        os.environ["GLOO_SOCKET_IFNAME"] = "eth0"
        for descriptor in (self.switch, *self.hosts, *self.ranks):
            os.close(descriptor)
        namespaces.drop_privileges()

    def count(self) -> dict[str, list[tuple[int, int]]]:
        """Bytes sent and received so far, by host and by rank.

        What came in at the far end of a wire is what was sent into it.
        """
        at_switch = self._counters(self.switch)
        at_hosts = [self._counters(namespace) for namespace in self.hosts]
        ranks = range(self.network.world_size)
        return {
            "hosts": [at_switch[f"host{host}"] for host in range(self.network.hosts)],
            "ranks": [at_hosts[self.network.host(rank)][f"rank{rank}"] for rank in ranks],
        }

    def _counters(self, namespace: int) -> dict[str, tuple[int, int]]:
        namespaces.set_network(namespace)
        ports = psutil.net_io_counters(pernic=True, nowrap=False)
        namespaces.set_network(self.switch)
        return {name: (port.bytes_recv, port.bytes_sent) for name, port in ports.items()}


def lay(network: Any) -> Wires:
    """Enter fresh namespaces and build the network; this process ends up on its switch.

    Raises:
        OSError: the kernel refuses, or a tool fails; the message says which step.
    """
    if problem := why_no_tools():
        raise OSError(problem)
    namespaces.enter_as_administrator()
    switch = namespaces.own_network()
    hosts = [namespaces.new_network() for _ in range(network.hosts)]
    ranks = [namespaces.new_network() for _ in range(network.world_size)]
    wires = Wires(network, switch, hosts, ranks)
    _in(switch, _bridge("host", "uplink", dict(enumerate(hosts))))
    _in(switch, [_rate(network, f"host{host}") for host in range(network.hosts)], tool="tc")
    for host, namespace in enumerate(hosts):
        here = {rank: fd for rank, fd in enumerate(ranks) if network.host(rank) == host}
        _in(namespace, [*_bridge("rank", "eth0", here), *_up("uplink", "master br0")])
        _in(namespace, [_rate(network, "uplink")], tool="tc")
    for rank, namespace in enumerate(ranks):
        _in(namespace, ["link set lo up", *_address(wires.address(rank))])
        _suit_tcp(network)
    namespaces.set_network(switch)
    return wires


def _bridge(kind: str, far_name: str, ends: dict[int, int]) -> list[str]:
    """Lines for a bridge, and a cable from it to each of the namespaces `ends`, by number."""
    lines = ["link set lo up", f"link add br0 mtu {MTU} type bridge", *_up("br0")]
    for number, namespace in ends.items():
        near = f"{kind}{number}"
        far = f"name {far_name} mtu {MTU} netns /proc/self/fd/{namespace}"
        lines.append(f"link add {near} mtu {MTU} type veth peer {far}")
        lines += _up(near, "master br0")
    return lines


def _up(name: str, options: str = "") -> list[str]:
    """Lines that bring an interface up, without the chatter of IPv6."""
    return [f"link set dev {name} addrgenmode none", f"link set dev {name} {options} up"]


def _address(address: str) -> list[str]:
    """Lines that give a rank its address and let it send by TCP's oldest rule, in every kernel.

    That fills a link until it drops something. Others probe for the rate, or slow down as a queue
    grows: as some machines are set, a single message would take up to 1.4 times as long.
    """
    network = f"10.0.0.0/16 dev eth0 src {address} scope link"
    given = f"addr add {address}/16 dev eth0"
    return [given, *_up("eth0"), f"route replace {network} congctl reno"]


def _suit_tcp(network: Any) -> None:
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


def _rate(network: Any, name: str) -> str:
    rate = network.bytes_per_second
    burst, at_once = (max(_FRAME_BYTES, int(rate * s)) for s in (_BURST_SECONDS, _AT_ONCE_SECONDS))
    shape = f"rate {8 * rate:.0f}bit burst {burst} latency {1000 * _LATENCY_SECONDS:.0f}ms"
    peak = f"peakrate {8 * _PEAK * rate:.0f}bit mtu {at_once}"
    return f"qdisc add dev {name} root tbf {shape} {peak}"


def _in(namespace: int, lines: list[str], tool: str = "ip") -> None:
    """Run lines of `ip` or `tc` in a network namespace."""
    namespaces.set_network(namespace)
    done = subprocess.run(
        [shutil.which(tool, path=_PATH), "-batch", "-"],
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
