"""`launch(..., launcher="slurm")`: the ranks of a launch on the nodes of a Slurm allocation.

The function, its arguments, its results and its errors are the same as on one machine. Rank 0 is
on the first node, neighbours are on the same node, and each node has as many ranks as the others
or one more. Byte counts, deadlocks and lines are reported as ever; times are those of each node's
own clock, shifted by its difference from this one's, which is known to about 0.1 ms.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch.distributed as dist

from byhand.runtime.cluster_client import ClusterClient, placement
from byhand.runtime.cluster_start import Allocation
from byhand.runtime.process.launcher import Launcher
from byhand.runtime.process.world import choose_backend


class ClusterLauncher(Launcher):
    """A Launcher whose ranks live on every node of the Slurm allocation this process is in.

    The nodes' processes start with the first launch, and end with `close` or with this process.
    """

    _client: ClusterClient | None

    def start(self) -> None:
        """Start the nodes, unless they run.

        Raises:
            LaunchError: this process is in no allocation, or a node did not come.
        """
        if self._client is not None and not self._client.is_usable():
            self._warm.clear()
            self.close()
        if self._client is None:
            self._client = ClusterClient.start(Allocation.current())

    def fresh(self, **_: Any) -> Launcher:
        """Sandboxes are for one machine.

        Raises:
            ValueError: always.
        """
        raise ValueError("a sandbox holds ranks of one machine, not those of a Slurm allocation")

    def _on(self, network: Any) -> Launcher:
        raise ValueError(
            f"{network!r} is made on one machine; on a Slurm allocation the network is the real one"
        )

    def _backend(self, backend: str, world_size: int) -> str:
        if self._gpus is None:
            self._gpus = self._client.count_gpus() if dist.is_nccl_available() else 0
        most_on_a_node = placement(world_size, len(self._client.nodes)).count(0)
        return choose_backend(backend, most_on_a_node, self._gpus)

    def _request(self, members: list[Any], calls: list[bytes], alone: bool) -> None:
        """Give each rank its call."""
        header = {"trusted": True, "alone": alone, "path": sys.path, "directory": os.getcwd()}
        self._client.request(members, header, json.dumps(self.prelude).encode(), calls)
