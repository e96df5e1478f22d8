"""Calls to the kernel that a rank of a sandbox may not make, and what honest programs need."""

import asyncio
import ctypes
import errno
import os

import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from autograder.grade.judge import LIMITS
from byhand.runtime.launch import launch_on
from byhand.runtime.walls import isolation, seccomp
from byhand.runtime.walls.question import Sandbox

pytestmark = pytest.mark.skipif(
    os.uname().machine not in seccomp.MACHINES, reason="no filter for this machine's calls"
)
CALLS = seccomp.MACHINES.get(os.uname().machine)


@pytest.fixture(scope="module")
def question():
    """A question behind the walls."""
    if why_not := isolation.why_no_sandbox():
        pytest.skip(why_not)
    with Sandbox(isolation.sandbox_command()) as launcher:
        yield launcher.fresh(limits=LIMITS)


def refused(calls: list[tuple[int, ...]], gpu: bool | None = None) -> list[bool]:
    """Whether the kernel knows none of these calls (number, arguments)."""
    if gpu is not None:
        seccomp.forbid(gpu)
    libc = ctypes.CDLL(None, use_errno=True)
    found = []
    for call in calls:
        failed = libc.syscall(*call, *[0] * (7 - len(call))) == -1
        found.append(failed and ctypes.get_errno() == errno.ENOSYS)
    return found


KEYS = [(number, 0) for number in CALLS.keys] if CALLS else []
MEMORY = [(number, 0) for number in CALLS.memory] if CALLS else []
SHARED = [(CALLS.mmap, 0, 4096, 3, flags, -1) for flags in (0x21, 0x23, 0x4021)] if CALLS else []
BUFFERS = [(CALLS.setsockopt, -1, 1, option) for option in (7, 8)] if CALLS else []


def test_a_submission_reaches_no_keyring_and_no_uncounted_memory(question):
    calls = KEYS + MEMORY + SHARED + BUFFERS
    run = launch_on(question, refused, 1, (calls,), setup=False, alone=True)
    assert run.results[0] == [True] * len(calls)


def test_a_rank_with_a_gpu_has_memory_files():
    with Sandbox() as launcher, launcher.fresh() as question:
        args = (KEYS + MEMORY[:1] + SHARED[:1], True)
        run = launch_on(question, refused, 1, args, setup=False, alone=True)
    assert run.results[0] == [True] * 3 + [False] * 2


def make_namespaces() -> dict[str, str]:
    """What the kernel says to each way to namespaces and mounts."""
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    user, mounts, new = 0x10000000, 0x00020000, struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0)
    here = {name: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("mnt", "net")}
    ways = {
        "unshare user": lambda: libc.unshare(user),
        "unshare mounts": lambda: libc.unshare(mounts),
        "clone3": lambda: libc.syscall(435, new, len(new)),
        "setns mounts": lambda: libc.setns(here["mnt"], 0),
        "setns network": lambda: libc.setns(here["net"], 0),
        "mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "umount": lambda: libc.umount2(b"/tmp", 2),
        "fsopen": lambda: libc.syscall(430, b"tmpfs", 0),
        "open_tree": lambda: libc.syscall(428, -100, b"/tmp", 1),
    }
    found = {}
    for name, way in ways.items():
        if (done := way()) == 0 and name == "clone3":
            os._exit(0)  # in a child
        found[name] = "done" if done >= 0 else errno.errorcode[ctypes.get_errno()]
    return found


def test_a_rank_makes_no_namespace_and_mounts_nothing(question):
    found = launch_on(question, make_namespaces, 1, setup=False, alone=True).results[0]
    assert set(found.values()) == {"ENOSPC", "EPERM"}, found


def share() -> tuple[list[float], bool, bytes]:
    """An array and a tensor that two processes share, and zeros."""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    array, tensor = context.Array("d", 2), torch.zeros(2).share_memory_()

    def fill() -> None:
        array[1], tensor[1] = 7.0, 8.0

    child = context.Process(target=fill)
    child.start()
    child.join()
    return [*array, *tensor.tolist()], tensor.is_shared(), open("/dev/zero", "rb").read(3)


def test_processes_of_a_rank_may_share_memory_that_is_counted(question):
    found = launch_on(question, share, 1, setup=False, alone=True).results[0]
    assert found == ([0.0, 7.0, 0.0, 8.0], True, bytes(3))


def terminals(rank: int, world_size: int) -> tuple[list[str], bytes]:
    import subprocess

    ours, theirs = os.openpty()
    dist.barrier()
    seen = sorted(os.listdir("/dev/pts"))
    dist.barrier()
    subprocess.run(["echo", "hello"], stdout=theirs, stdin=theirs, timeout=20)
    return seen, os.read(ours, 100)


def test_a_rank_has_terminals_and_sees_no_other_ranks(question):
    assert launch_on(question, terminals, 2).results == [(["0", "ptmx"], b"hello\r\n")] * 2


def run_together() -> list[int]:
    async def later(number: int) -> int:
        return await asyncio.to_thread(abs, -number)

    async def all_of_them() -> list[int]:
        await asyncio.sleep(0.01)
        return await asyncio.gather(*map(later, range(3)))

    return asyncio.run(all_of_them())


def test_an_event_loop_runs(question):
    assert launch_on(question, run_together, 1, setup=False, alone=True).results == [[0, 1, 2]]


def add_up_batches(rank: int, world_size: int) -> float:
    data = TensorDataset(torch.arange(8.0).chunk(world_size)[rank])
    loader = DataLoader(data, batch_size=2, num_workers=2)
    total = sum(batch.sum() for (batch,) in loader)
    dist.all_reduce(total)
    return total.item()


def test_the_workers_of_a_data_loader_start(question):
    assert launch_on(question, add_up_batches, 2).results == [28.0, 28.0]


def speak(rank: int, world_size: int) -> float:
    del os.environ["BYHAND_STORE"]
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    x = torch.ones(1)
    dist.all_reduce(x, group=dist.new_group([0, 1]))
    return x.item()


def test_ranks_may_join_by_a_tcp_store(question):
    assert launch_on(question, speak, 2, setup=False).results == [2.0, 2.0]


def total_of(rank: int, world_size: int, num_bytes: int) -> None:
    dist.all_reduce(torch.ones(num_bytes // 4))


@pytest.mark.parametrize("num_bytes", [1 << 20, 8 << 20])
def test_the_loopback_of_a_question_is_counted_coarsely(question, num_bytes):
    run = launch_on(question, total_of, 3, (num_bytes,))
    sent = 2 * (3 - 1) * num_bytes  # all ranks together, in gloo's ring
    assert abs(run.loopback_bytes - sent) < 0.25 * sent + (256 << 10)


def test_the_machines_own_loopback_is_not_counted():
    with Sandbox() as launcher, launcher.fresh() as question:
        assert launch_on(question, total_of, 2, (4,)).loopback_bytes is None
