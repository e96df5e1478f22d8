"""Fails as its first argument says."""

import atexit
import multiprocessing
import os
import signal
import sys
import tempfile
import time

import psutil
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def left_early(rank):
    if rank != 1:
        dist.all_reduce(torch.ones(4))


def cycle(rank):
    if rank < 2:
        dist.recv(torch.ones(4), 1 - rank)
    dist.barrier()


def different_calls(rank):
    if rank == 2:
        dist.broadcast(torch.ones(4), 0)
    else:
        dist.all_reduce(torch.ones(4))


def raises(rank):
    if rank == 2:
        raise ValueError("a bad batch")
    dist.barrier()


def raises_and_leaves(rank):
    """Rank 2's exit functions run backwards: the first that is registered never ends."""
    folder = tempfile.TemporaryDirectory(prefix="left-", dir=sys.argv[3])
    atexit.register(time.sleep, 1000 if len(sys.argv) > 4 else 0)
    atexit.register(dist.destroy_process_group)
    atexit.register(lambda: print("at the exit", os.path.isdir(folder.name)))
    raises(rank)


def raises_with_a_lock(rank):
    lock = multiprocessing.get_context("spawn").Lock()  # a named semaphore
    dist.barrier()
    with lock:
        raises(rank)


def raises_beside_ddp(rank):
    model = DistributedDataParallel(torch.nn.Linear(8, 4))
    store = dist.distributed_c10d._get_default_store()
    store.set(f"process of {rank}", str(os.getpid()))
    if rank == 2:
        others = [psutil.Process(int(store.get(f"process of {rank}"))) for rank in (0, 1)]
        used = None
        # until they stand still, and neither only waits for a processor
        while used != (used := [other.cpu_times()[:2] for other in others]) or any(
            other.status() == psutil.STATUS_RUNNING for other in others
        ):
            time.sleep(0.5)
        raise ValueError("a bad batch")
    model(torch.ones(2, 8)).sum().backward()


def exits(rank):
    if rank == 1:
        sys.exit(3)
    dist.barrier()


def dies(rank):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    dist.barrier()


def sleeps(rank):
    print("asleep", os.getpid(), flush=True)
    time.sleep(1000)


def saves(rank):
    """Rank 0 is in no call when it is stopped, and rank 1 waits for it."""

    def save(*_):
        print("saved", flush=True)
        sys.exit()

    atexit.register(print, "at the exit")
    signal.signal(signal.SIGTERM, save)
    print("asleep", os.getpid(), flush=True)
    try:
        time.sleep(1000 * (1 - rank))
        dist.barrier()
    except KeyboardInterrupt:
        save()
    finally:
        print("cleaned up")


def heeds_nothing(rank):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sleeps(rank)


def asks(rank):
    if rank == int(sys.argv[3]):
        input("go on? ")
    dist.barrier()


def prints(rank):
    while True:
        print("a line")


def asks_for_nccl(rank):
    group = dist.new_group([0, 1, 2], backend="nccl")
    print(dist.get_backend(), dist.get_backend(group))


def joins_alone(rank):
    """What follows init_process_group here: rank 0 has never called it."""


def never_meets(rank):
    """What would follow it: all are rank 1, and look for a rank 0 that nobody is."""


if __name__ == "__main__":
    how, backend, rank = sys.argv[1], sys.argv[2], int(os.environ["RANK"])
    if how == "never_meets":
        dist.init_process_group(backend, init_method="tcp://127.0.0.1:9", rank=1, world_size=3)
    elif how != "joins_alone" or rank:
        dist.init_process_group(backend)
    globals()[how](rank)
