"""Several hosts on one machine, joined by links of a chosen rate: what a launch may run over.

Every host has a network namespace of its own, with an address, as a machine of a real cluster has;
the ranks of a host meet on its loopback, and the hosts on a switch:

    ranks 0, 1 on host 0 ══ uplink ══ switch ══ uplink ══ host 1 with ranks 2, 3

Each uplink carries `bytes_per_second` in each direction, by itself; within a host nothing is
slowed down. The kernel counts every byte of an uplink, so a ledger can be held against it.
The namespaces belong to processes that end with the notebook's: nothing is left behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from byhand.runtime.system import is_number, whole_number

MOST_RANKS = 64
LEAST_RATE = 1e4


@dataclass(frozen=True)
class VirtualNetwork:
    """`hosts` × `ranks_per_host` ranks; rank r lives on host r // ranks_per_host.

    `bytes_per_second` is the rate of each host's link in each direction, frames' headers included.

    Raises:
        ValueError: fewer than one host or rank, more than 64 ranks, or a rate below 10 kB/s.

    >>> network = VirtualNetwork(hosts=2, ranks_per_host=4)
    >>> network.world_size, [network.host(rank) for rank in range(8)]
    (8, [0, 0, 0, 0, 1, 1, 1, 1])
    """

    hosts: int = 2
    ranks_per_host: int = 2
    bytes_per_second: float = 25e6

    def __post_init__(self) -> None:
        for name in ("hosts", "ranks_per_host"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        if self.world_size > MOST_RANKS:
            ranks = f"{self.hosts} hosts × {self.ranks_per_host} = {self.world_size} ranks"
            raise ValueError(f"{ranks} are more than a virtual network's {MOST_RANKS}")
        rate = self.bytes_per_second
        if not is_number(rate) or not LEAST_RATE <= rate < float("inf"):
            raise ValueError(f"bytes_per_second is a number of at least 10 000, not {rate!r}")
        object.__setattr__(self, "bytes_per_second", float(rate))

    @property
    def world_size(self) -> int:
        """How many ranks there are on all hosts together."""
        return self.hosts * self.ranks_per_host

    def host(self, rank: int) -> int:
        """The host that `rank` lives on."""
        if not 0 <= rank < self.world_size:
            last = self.world_size - 1
            raise ValueError(f"rank {rank} is on no host of this network: ranks are 0 to {last}")
        return rank // self.ranks_per_host


class Bytes(NamedTuple):
    """What one port carried, as the kernel counted it: whole frames, their headers included."""

    sent: int
    received: int


@dataclass(frozen=True)
class Traffic:
    """Bytes by host, over its uplink, during a launch; not what ranks of one host exchanged.

    The counts exceed what a ledger of sends says by headers and acknowledgements, 1 % or less of
    large messages, and by gloo's own: 144 bytes a message, some kilobytes to connect.
    """

    hosts: list[Bytes]
