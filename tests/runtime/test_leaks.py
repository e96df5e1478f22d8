"""What grows with use: descriptors and memory after many launches, processes after large ones."""

from __future__ import annotations

import gc
import itertools
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import psutil
import pytest
import torch
import torch.distributed as dist

from byhand import PerRank, RankError, VirtualNetwork
from byhand.runtime import DeadlineError, DeadlockError, Launcher, LaunchError, shutdown
from byhand.runtime import launcher as launcher_of_ranks
from byhand.runtime.launching import launch_on
from byhand.runtime.process.client import ForkClient
from byhand.runtime.process.member import read_all
from byhand.runtime.system import MAX_RANKS, PORTABLE
from byhand.runtime.walls.isolation import sandbox_command, why_no_sandbox
from byhand.runtime.walls.question import Sandbox

linux_only = pytest.mark.skipif(PORTABLE, reason="it looks into /proc, or needs walls")
pytestmark = linux_only
MEBIBYTE = 1 << 20
often = pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.soak)])


def held(pid: int) -> tuple[int, int]:
    """How many descriptors a process has open, and the mebibytes of memory files among them."""
    count, num_bytes = 0, 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # it was that of this list
            path = f"/proc/{pid}/fd/{name}"
            is_memory = os.readlink(path).startswith("/memfd:")
            num_bytes += 512 * os.stat(path).st_blocks if is_memory else 0
            count += 1
    return count, num_bytes // MEBIBYTE


def held_by(launcher: Launcher) -> list[tuple[int, int]]:
    """By this process, and by the launcher's fork server when it has done all it was asked."""
    launcher._client.count()
    return [held(os.getpid()), held(launcher._client.process_id)]


def add_up(rank, world_size, x, mine):
    dist.all_reduce(x)
    return x[:4] + mine


def raises(rank, world_size, notebook):
    raise ValueError("on purpose")


def waits_alone(rank, world_size, notebook):
    if rank == 0:
        dist.barrier()


def presses_stop(rank, world_size, notebook):
    if rank == 0:
        os.kill(notebook, signal.SIGINT)
    time.sleep(60)


def dies(rank, world_size, notebook):
    os._exit(3)


def runs_on(rank, world_size, notebook):
    time.sleep(60)


@pytest.fixture(scope="module", autouse=True)
def alone():
    """Nothing of other tests in this process ends, and is counted, while these run."""
    shutdown()
    gc.collect()


@pytest.fixture(scope="module")
def launcher():
    with Launcher() as launcher:
        yield launcher


@often
@pytest.mark.parametrize("world_size", [1, 2, 4, 8])
def test_launches_hold_no_more_than_the_first_two_did(launcher, world_size, count):
    each = PerRank(range(world_size))
    calls = [(torch.ones(MEBIBYTE // 16), 0), (torch.ones(MEBIBYTE // 16), each)]
    for args in calls:
        launch_on(launcher, add_up, world_size, args)
    before = held_by(launcher)
    for args in count // 2 * calls:
        launch_on(launcher, add_up, world_size, args)
    assert held_by(launcher) == before


@often
@pytest.mark.parametrize(
    ("ends", "error", "deadline"),
    [
        (raises, RankError, 60),
        (dies, RankError, 60),
        (waits_alone, DeadlockError, 60),
        (presses_stop, KeyboardInterrupt, 60),
        (runs_on, DeadlineError, 0.05),
    ],
)
def test_launches_that_fail_hold_no_more_than_the_first_did(launcher, ends, error, deadline, count):
    def fails():
        with pytest.raises(error):
            launch_on(launcher, ends, 2, (os.getpid(),), deadline=deadline)

    # what a shell starts in the background ignores the stop button, and hands that down
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        fails()
        before = held_by(launcher)
        for _ in range(count):
            fails()
        assert held_by(launcher) == before
    finally:
        signal.signal(signal.SIGINT, kept)


def test_fork_servers_that_died_leave_nothing_in_the_notebook(launcher):
    def dies_and_is_started_again():
        os.kill(launcher._client.process_id, signal.SIGKILL)
        launcher._client._process.wait()
        launch_on(launcher, add_up, 2, (torch.ones(4), 0))
        return held_by(launcher)

    launch_on(launcher, add_up, 2, (torch.ones(4), 0))
    assert dies_and_is_started_again() == dies_and_is_started_again()


@often
@pytest.mark.network
def test_launches_on_a_network_hold_no_more_than_the_first_did(launcher, count):
    network, args = VirtualNetwork(2, 1), (torch.ones(MEBIBYTE // 16), PerRank(range(2)))
    launch_on(launcher, add_up, 2, args, network=network)
    before = held_by(launcher)
    for _ in range(count):
        launch_on(launcher, add_up, 2, args, network=network)
    assert held_by(launcher) == before


@often
@pytest.mark.skipif(why_no_sandbox() is not None, reason=str(why_no_sandbox()))
def test_launches_behind_walls_hold_no_more_than_the_first_did(count):
    def questions(count: int) -> tuple[int, int]:
        for _ in range(count):
            with sandbox.fresh() as question:
                for args in ((torch.ones(4), 0), (torch.ones(4), PerRank(range(2)))):
                    launch_on(question, add_up, 2, args)
        return held(os.getpid())

    shutdown()  # else another test's server, idle for five minutes, is ended in the midst of this
    with Sandbox(sandbox_command()) as sandbox:
        assert questions(1) == questions(count)


PORTABLE_LAUNCHES = """
import os, sys, torch
from byhand import PerRank, launch
from byhand.runtime.system import PORTABLE

def step(rank, world_size, x, mine): return x[:2] + mine

assert PORTABLE
for count in (1, int(sys.argv[1])):
    for _ in range(count):
        launch(step, 2, (torch.ones(1 << 18), PerRank([1, 2])))
        launch(step, 2, (torch.ones(1 << 18), 0))
    print(len(os.listdir("/proc/self/fd")))
"""


@often
def test_launches_by_the_portable_path_hold_no_more_than_the_first_did(tmp_path, count):
    program = tmp_path / "program.py"
    program.write_text(PORTABLE_LAUNCHES)
    environ = {**os.environ, "BYHAND_PORTABLE": "1"}
    command = [sys.executable, program, str(count)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    first, last = done.stdout.split()
    assert first == last, done.stderr


def children_of(launcher: Launcher) -> list[psutil.Process]:
    return psutil.Process(launcher._client.process_id).children(recursive=True)


@contextmanager
def files_left(count):
    """Let this process open so many more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_open = set(map(int, os.listdir("/proc/self/fd")))
    free = (number for number in itertools.count() if number not in is_open)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (next(itertools.islice(free, count, None)), limits[1])
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_where_open_files_run_out_waiting_ranks_give_up_theirs_and_a_sentence_names_the_limit():
    def own(rank, world_size):
        return rank

    with Launcher() as launcher:
        launch_on(launcher, own, 4)  # as many wait for the next launch, with 5 files each
        before = held_by(launcher)[0][0]
        with files_left(10):
            assert len(launch_on(launcher, own, 5).results) == 5
            with pytest.raises(LaunchError, match=r"8 ranks need more .* \(ulimit -n\), 8 a rank"):
                launch_on(launcher, own, 8)
            assert len(launch_on(launcher, own, 4).results) == 4
        assert held_by(launcher)[0][0] == before


def test_the_ranks_that_wait_are_bounded_together(monkeypatch):
    monkeypatch.setattr(launcher_of_ranks, "WARM_RANKS", 6)
    with Launcher() as launcher:
        for world_size in (2, 4, 3):
            launch_on(launcher, lambda rank, world_size: rank, world_size)
            waiting = [len(team.members) for team in launcher._warm.values()]
            assert waiting == {2: [2], 4: [2, 4], 3: [3]}[world_size]


def test_of_two_hundred_ranks_none_outlives_the_call(monkeypatch):
    monkeypatch.setenv(MAX_RANKS, "200")
    with Launcher() as launcher:  # one that keeps no ranks of an earlier launch waiting
        with suppress(DeadlineError):  # a fast machine may have run them all
            launch_on(launcher, runs_on, 200, (0,), deadline=1.0)
        assert launcher._client.process_id is None or not children_of(launcher)


def test_the_deadline_counts_while_ranks_are_forked(launcher, monkeypatch):
    monkeypatch.setenv(MAX_RANKS, "1000")
    launch_on(launcher, add_up, 1, (torch.ones(4), 0))
    server = psutil.Process(launcher._client.process_id)
    server.suspend()  # as one that is kept from the processor
    with pytest.raises(DeadlineError, match="1000 ranks could not be started within"):
        launch_on(launcher, runs_on, 1000, (0,), deadline=0.1)
    assert not server.is_running()
    assert launch_on(launcher, add_up, 1, (torch.ones(4), 0)).world_size == 1


def test_a_fork_server_whose_notebook_is_gone_forks_no_more_of_what_was_asked():
    client = ForkClient.start()
    client.expect("hello", 60)
    server = psutil.Process(client.process_id)
    server.suspend()
    talks = {"world_size": 40, "setup": False, "threads": "none"}  # each rank says that it is none
    members = client.fork_team(talks).members
    client.connection.close()
    server.resume()
    client.close()
    said = [read_all(member.output_fd, 1000) for member in members]
    for member in members:
        member.close()
    assert not any(said)
