"""Calls to the kernel that a rank of a sandbox may not make, and what honest programs need."""

import asyncio
import ctypes
import errno
import os

import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from autograder.grade.plan import LIMITS
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


def refused(calls: list[tuple[int, int]], gpu: bool | None = None) -> list[bool]:
    """Whether the kernel knows none of these calls (number, first argument)."""
    if gpu is not None:
        seccomp.forbid(gpu)
    libc = ctypes.CDLL(None, use_errno=True)
    found = []
    for number, argument in calls:
        failed = libc.syscall(number, argument, 0, 0, 0, 0) == -1
        found.append(failed and ctypes.get_errno() == errno.ENOSYS)
    return found


KEYS = [(number, 0) for number in CALLS.keys] if CALLS else []
MEMORY = [(number, 0) for number in CALLS.memory] if CALLS else []
NAMESPACES = [(CALLS.namespaces[0], 0x10000000), (CALLS.clone, 0x10000011)] if CALLS else []


def test_a_submission_reaches_no_keyring_no_uncounted_memory_and_no_namespace(question):
    calls = KEYS + MEMORY + NAMESPACES
    run = question.launch(refused, 1, (calls,), setup=False, alone=True)
    assert run.results[0] == [True] * len(calls)


def test_a_rank_with_a_gpu_has_memory_files():
    with Sandbox(trusted=True) as launcher, launcher.fresh(isolate=False) as question:
        args = (KEYS + NAMESPACES + MEMORY[:1], True)
        run = question.launch(refused, 1, args, setup=False, alone=True)
    assert run.results[0] == [True] * 5 + [False]


def run_together() -> list[int]:
    async def later(number: int) -> int:
        return await asyncio.to_thread(abs, -number)

    async def all_of_them() -> list[int]:
        await asyncio.sleep(0.01)
        return await asyncio.gather(*map(later, range(3)))

    return asyncio.run(all_of_them())


def test_an_event_loop_runs(question):
    assert question.launch(run_together, 1, setup=False, alone=True).results == [[0, 1, 2]]


def add_up_batches(rank: int, world_size: int) -> float:
    data = TensorDataset(torch.arange(8.0).chunk(world_size)[rank])
    loader = DataLoader(data, batch_size=2, num_workers=2)
    total = sum(batch.sum() for (batch,) in loader)
    dist.all_reduce(total)
    return total.item()


def test_the_workers_of_a_data_loader_start(question):
    assert question.launch(add_up_batches, 2).results == [28.0, 28.0]


def speak(rank: int, world_size: int) -> float:
    del os.environ["BYHAND_STORE"]
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    x = torch.ones(1)
    dist.all_reduce(x, group=dist.new_group([0, 1]))
    return x.item()


def test_ranks_may_join_by_a_tcp_store(question):
    assert question.launch(speak, 2, setup=False).results == [2.0, 2.0]


def total_of(rank: int, world_size: int, num_bytes: int) -> None:
    dist.all_reduce(torch.ones(num_bytes // 4))


@pytest.mark.parametrize("num_bytes", [1 << 20, 8 << 20])
def test_the_loopback_of_a_question_is_counted_coarsely(question, num_bytes):
    run = question.launch(total_of, 3, (num_bytes,))
    sent = 2 * (3 - 1) * num_bytes  # all ranks together, in gloo's ring
    assert abs(run.loopback_bytes - sent) < 0.25 * sent + (256 << 10)


def test_the_machines_own_loopback_is_not_counted():
    with Sandbox(trusted=True) as launcher, launcher.fresh(isolate=False) as question:
        assert question.launch(total_of, 2, (4,)).loopback_bytes is None
