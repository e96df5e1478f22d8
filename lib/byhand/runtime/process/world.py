"""Joining and leaving the world: what every distributed program does first and last.

`setup` finds the other ranks in one of three ways:
- under `launch` they share a file, on one machine in memory (a TCP store would ask the network for
  host names);
- under torchrun MASTER_ADDR and MASTER_PORT are in the environment; its store lives on when ranks
  are restarted, so those that meet agree on a new name first, under which nobody has left anything;
- under torch.multiprocessing.spawn nothing is, but all ranks have the same parent: rank 0 opens a
  store on a free port and leaves its number in a file named after the parent.
No port is ever fixed, so two programs never meet by accident.
"""

from __future__ import annotations

import datetime
import itertools
import os
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

from byhand.runtime.system import MIXED, check_backend, loopback
from byhand.words import counted

JOIN_SECONDS = 60.0
ELASTIC_SECONDS = 600.0  # under torchrun, whose hosts may import at different speeds


def setup(rank: int, world_size: int, backend: str = "auto") -> None:
    """Join the default process group as `rank` of `world_size`.

    `backend`: "gloo", "nccl", or "auto": NCCL for CUDA tensors when every rank of this machine
    has a GPU of its own, else gloo (which also takes CUDA tensors, so ranks may share a GPU).

    Raises:
        ValueError: a rank outside the world, a backend that is missing, too few GPUs for NCCL.
        RuntimeError: this process is in a process group already.

    >>> def own(rank, world_size):
    ...     setup(rank, world_size)
    ...     total = torch.ones(1)
    ...     dist.all_reduce(total)
    ...     cleanup()
    ...     return total.item()
    >>> launch(own, 2, setup=False).results
    [2.0, 2.0]
    """
    if not 0 <= rank < world_size:
        raise ValueError(
            f"rank {rank} is not in a world of {world_size}: ranks are 0 to {world_size - 1}"
        )
    if dist.is_initialized():
        raise RuntimeError(
            "this rank has joined a process group already; launch(..., setup=True) "
            "does it for you, so call setup only with setup=False"
        )
    backend = choose_backend(backend, int(os.environ.get("LOCAL_WORLD_SIZE", world_size)))
    if torch.cuda.is_available():
        torch.cuda.set_device(device(rank))
    if "BYHAND_STORE" in os.environ:
        dist.init_process_group(
            backend, store=_launch_store(world_size), rank=rank, world_size=world_size
        )
    elif "MASTER_ADDR" in os.environ:
        if os.environ["MASTER_ADDR"] in ("127.0.0.1", "localhost"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback())
        store, *_ = next(dist.rendezvous("env://", rank, world_size))
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            store = _fresh(store, rank, world_size)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size)
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback())
        store = _siblings_store(rank, world_size)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size)


def cleanup() -> None:
    """Leave the default process group. Safe to call when there is none."""
    if dist.is_initialized():
        dist.destroy_process_group()


def device(rank: int) -> torch.device:
    """Where `rank` keeps its tensors: GPU number rank modulo the GPUs here, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", rank % torch.cuda.device_count())
    return torch.device("cpu")


def choose_backend(backend: str, local_world_size: int, gpus: int | None = None) -> str:
    """The backend's name for torch: `backend` itself if it can run here, or the choice of "auto".

    `gpus` is the number of GPUs of this machine; counted when None.

    Raises:
        ValueError: the backend is unknown, not built in, or has fewer GPUs than ranks.
    """
    check_backend(backend)
    if backend == "gloo" or not dist.is_nccl_available():
        if backend == "nccl":
            raise ValueError('backend "nccl" is not built into this torch; use "gloo"')
        return "gloo"
    gpus = torch.cuda.device_count() if gpus is None else gpus
    if backend != "auto" and gpus < local_world_size:
        ranks = counted(local_world_size, "rank")
        raise ValueError(
            f'backend "nccl" needs one GPU per rank: {ranks}, '
            f'{gpus} GPUs here. Use fewer ranks, or "gloo", whose ranks may share '
            "one"
        )
    return MIXED if 0 < local_world_size <= gpus else "gloo"


def nccl_needs_more(local_world_size: int) -> str | None:
    """What NCCL needs that this machine has not, for so many ranks; None where it can run."""
    gpus = torch.cuda.device_count()
    if gpus >= local_world_size and dist.is_nccl_available():
        return None
    here = f"{counted(local_world_size, 'rank')} and {counted(gpus, 'GPU')} here"
    if gpus >= local_world_size:
        return "is not built into this torch"
    return f"needs a GPU for every rank: {here}"


_setups = itertools.count()


def _launch_store(world_size: int) -> dist.Store:
    """What `launch` gives its ranks to meet at, under a name of its own for each setup."""
    store = dist.FileStore(os.environ["BYHAND_STORE"], world_size)
    return dist.PrefixStore(f"setup {next(_setups)}", store)


def _fresh(store: dist.Store, rank: int, world_size: int) -> dist.Store:
    """A part of torchrun's store that these ranks alone use, whatever ranks before them have left.

    Who died may have left its address under every name that one could think of. So each rank asks
    in a name of its own, and rank 0 answers whoever asks, until as many as are in the world are in.
    """
    own, until = uuid.uuid4().hex, time.monotonic() + ELASTIC_SECONDS

    def answer() -> None:
        """Tell every rank that asks, and those that asked and died, the name of this meeting."""
        for other in range(1, world_size):
            if store.check([f"byhand/asks/{other}"]):
                asked = store.get(f"byhand/asks/{other}").decode()
                store.set(f"byhand/answer/{asked}", own)

    if rank == 0:
        fresh = dist.PrefixStore(own, store)
        _wait_for_all(fresh, world_size, until, answer)
        return fresh
    store.set(f"byhand/asks/{rank}", own)
    store.wait([f"byhand/answer/{own}"], datetime.timedelta(seconds=ELASTIC_SECONDS))
    fresh = dist.PrefixStore(store.get(f"byhand/answer/{own}").decode(), store)
    fresh.add("byhand/joined", 1)
    return fresh


def _siblings_store(rank: int, world_size: int) -> dist.Store:
    """A store shared by the processes that have the same parent as this one."""
    path = Path(tempfile.gettempdir()) / f"byhand-{os.getuid()}-{os.getppid()}"
    until = time.monotonic() + JOIN_SECONDS
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, world_size, is_master=True, wait_for_workers=False)
        draft = path.with_suffix(".new")
        draft.write_text(f"{os.getpid()} {store.port}")
        draft.rename(path)
        _wait_for_all(store, world_size, until)
        path.unlink(missing_ok=True)
        return store
    while time.monotonic() < until:
        try:
            owner, port = path.read_text().split()
            os.kill(int(owner), 0)
            limit = datetime.timedelta(seconds=JOIN_SECONDS)
            store = dist.TCPStore(
                "127.0.0.1", int(port), world_size, timeout=limit, wait_for_workers=False
            )
            store.add("byhand/joined", 1)
            return store
        except (FileNotFoundError, ValueError, ProcessLookupError, dist.DistNetworkError):
            time.sleep(0.01)
    raise RuntimeError(
        f"rank {rank} of {world_size} found no rank 0 within {JOIN_SECONDS:.0f} s: "
        "start all ranks from one parent process, or set MASTER_ADDR and "
        "MASTER_PORT"
    )


def _wait_for_all(
    store: dist.Store, world_size: int, until: float, meanwhile: Callable[[], None] | None = None
) -> None:
    while store.add("byhand/joined", 0) < world_size - 1:
        if time.monotonic() > until:
            joined = store.add("byhand/joined", 0) + 1
            raise RuntimeError(f"only {joined} of {world_size} ranks called setup in time")
        if meanwhile is not None:
            meanwhile()
        time.sleep(0.005)
