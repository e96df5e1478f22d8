"""Calls to the kernel that a rank of a sandbox may not make, behind each kind of wall."""

import errno
import os

import pytest

from autograder.grade.plan import LIMITS
from byhand.runtime import Launcher
from byhand.runtime.walls import isolation, seccomp

pytestmark = pytest.mark.skipif(
    os.uname().machine not in seccomp.MACHINES, reason="no filter for this machine's calls"
)
WALLS = {
    "bubblewrap": (isolation.why_no_bubblewrap, isolation.sandbox_command),
    "landlock": (isolation.why_no_landlock, isolation.confined_command),
}
SOCKETS = (
    "socket.socket()",
    "socket.socket(socket.AF_INET6)",
    "socket.if_nameindex()",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)",
    "socket.socket(socket.AF_UNIX)",
    "socket.socketpair()",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2)",
)


@pytest.fixture(scope="module", params=WALLS)
def question(request):
    """A question behind each kind of wall."""
    why_not, command = WALLS[request.param]
    if why_not():
        pytest.skip(why_not())
    with Launcher(command(), trusted=False) as launcher:
        yield launcher.fresh(isolate=request.param == "bubblewrap", limits=LIMITS)


def opens(*kinds: str) -> list[bool]:
    import socket

    def opened(kind: str) -> bool:
        try:
            eval(kind, {"socket": socket})
        except OSError:
            return False
        return True

    return [opened(kind) for kind in kinds]


def test_a_submission_has_sockets_for_tcp_and_for_the_list_of_interfaces_alone(question):
    found = question.launch(opens, 1, SOCKETS, setup=False, alone=True).results[0]
    assert found == [True] * 3 + [False] * 5


def speak(rank: int, world_size: int, join: bool) -> float:
    import torch
    import torch.distributed as dist

    if join:
        del os.environ["BYHAND_STORE"]
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
    x = torch.ones(1)
    dist.all_reduce(x, group=dist.new_group([0, 1]))
    return x.item()


@pytest.mark.parametrize("join", [False, True], ids=["by launch", "by a tcp store"])
def test_gloo_needs_no_other_socket(question, join):
    assert question.launch(speak, 2, (join,), setup=not join).results == [2.0, 2.0]


def run_together() -> list[int]:
    import asyncio

    async def later(number: int) -> int:
        return await asyncio.to_thread(abs, -number)

    async def all_of_them() -> list[int]:
        await asyncio.sleep(0.01)
        return await asyncio.gather(*map(later, range(3)))

    return asyncio.run(all_of_them())


def test_an_event_loop_runs_without_a_pair_of_sockets(question):
    assert question.launch(run_together, 1, setup=False, alone=True).results == [[0, 1, 2]]


def ask_for_keys(gpu: bool | None) -> list[int]:
    import ctypes

    if gpu is not None:
        seccomp.forbid(gpu)
    libc, calls = ctypes.CDLL(None, use_errno=True), seccomp.MACHINES[os.uname().machine]
    answers = [(libc.syscall(call, 0, 0, 0, 0), ctypes.get_errno()) for call in calls.keys]
    return [number for _, number in answers]


def test_a_submission_reaches_no_keyring(question):
    found = question.launch(ask_for_keys, 1, (None,), setup=False, alone=True).results[0]
    assert found == [errno.ENOSYS] * 3


def test_a_rank_with_a_gpu_reaches_no_keyring_but_every_socket():
    def look():
        return ask_for_keys(gpu=True), opens(*SOCKETS[3:4], *SOCKETS[5:])

    with Launcher() as launcher:
        run = launcher.launch(look, 1, setup=False, alone=True)
    assert run.results == [([errno.ENOSYS] * 3, [True] * 4)]
