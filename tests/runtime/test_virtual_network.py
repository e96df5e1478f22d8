"""The virtual network: its rate, its counters, and that nothing of it stays behind."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist
from waiting import wait_until

from byhand import DeadlockError, VirtualNetwork, launch
from byhand.runtime import Launcher
from byhand.runtime.launching import launch_on
from byhand.runtime.network import wires
from byhand.runtime.system import loopback

MEBIBYTE = 1 << 20
pytestmark = pytest.mark.network


def all_reduce(rank, world_size, numel):
    x = torch.full((numel,), float(rank))
    dist.barrier()
    start = time.perf_counter()
    dist.all_reduce(x)
    return float(x[-1]), time.perf_counter() - start


def send_to_the_last(rank, world_size, num_bytes):
    x = torch.zeros(num_bytes, dtype=torch.uint8)
    if rank == 0:
        dist.send(x, world_size - 1)
    elif rank == world_size - 1:
        dist.recv(x, 0)


def receive_from_the_next(rank, world_size):
    dist.recv(torch.zeros(1), (rank + 1) % world_size)


def wait_for_ever(rank, world_size):
    print(f"pid {os.getpid()}", flush=True)
    time.sleep(600)


def test_an_all_reduce_over_two_hosts_takes_what_the_links_rate_says():
    network = VirtualNetwork(hosts=2, ranks_per_host=2, bytes_per_second=25e6)
    numel = MEBIBYTE
    run = launch(all_reduce, 4, (numel,), network=network)
    assert [total for total, _ in run.results] == [6.0] * 4
    least = 1.5 * 4 * numel / 25e6  # a ring sends 2·(4-1)/4 of S over each link and direction
    slowest = max(seconds for _, seconds in run.results)
    assert 0.9 * least < slowest, f"{slowest:.3f} s is less than the {least:.3f} s of the link"


@pytest.mark.parametrize("num_bytes", [1 * MEBIBYTE, 5 * MEBIBYTE])
def test_the_kernels_counters_agree_with_the_ledger_within_5_percent(num_bytes):
    network = VirtualNetwork(2, 2, 100e6)
    run = launch(all_reduce, 4, (num_bytes // 4,), network=network)
    for host in run.traffic.hosts:  # of a ring's four hops two lie between the hosts
        assert host.sent == pytest.approx(1.5 * num_bytes, rel=0.05)


def gather(rank, world_size, num_bytes):
    x = torch.zeros(num_bytes, dtype=torch.uint8)
    dist.gather(x, [torch.zeros_like(x) for _ in range(world_size)] if rank == 0 else None)


def test_a_slow_link_carries_nothing_twice_though_many_send_at_once():
    counts = []
    for rate in (1e5, 1e7):
        run = launch(gather, 4, (100_000,), network=VirtualNetwork(4, 1, rate))
        counts.append(sum(host.sent for host in run.traffic.hosts[1:]))
    assert counts[0] == pytest.approx(counts[1], rel=0.03)


def test_bytes_are_counted_for_the_host_that_sent_them():
    run = launch(send_to_the_last, 6, (2 * MEBIBYTE,), network=VirtualNetwork(3, 2, 50e6))
    assert [port.sent > 2 * MEBIBYTE for port in run.traffic.hosts] == [True, False, False]
    assert [port.received > 2 * MEBIBYTE for port in run.traffic.hosts] == [False, False, True]


def sending_rules(rank, world_size):
    """TCP's rule for each connection with another rank."""
    dist.all_reduce(torch.ones(1))
    found = set()
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as one:
            if one.family == socket.AF_INET and one.getpeername()[0] != "127.0.0.1":
                found.add(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16))
    return found


def window(rank, world_size):
    """The most bytes that a connection lets a peer send before an answer."""
    return int(Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()[-1])


@pytest.mark.parametrize(("rate", "most"), [(25e6, 100_000), (1e6, 65536)])
def test_a_message_does_not_fill_a_links_queue_so_that_another_waits_behind_it(rate, most):
    run = launch(window, 2, network=VirtualNetwork(2, 1, rate))
    assert run.results == [most, most]


def test_ranks_send_by_the_same_rule_of_tcp_on_every_machine():
    run = launch(sending_rules, 2, network=VirtualNetwork(2, 1, 25e6))
    assert [{rule.strip(b"\0") for rule in rules} for rules in run.results] == [{b"reno"}] * 2


def own_numbers(rank, world_size):
    """This process as the system calls numbers it, and as /proc does."""
    return os.getpid(), int(os.readlink("/proc/self")), psutil.Process().name()


def test_programs_find_themselves_in_the_proc_of_their_host():
    before = Path("/proc/self/mounts").read_text()
    run = launch(own_numbers, 2, network=VirtualNetwork(2, 1))
    for called, listed, name in run.results:
        assert (called, name) == (listed, psutil.Process().name())
    assert Path("/proc/self/mounts").read_text() == before


def all_reduce_in_a_group(rank, world_size):
    x = torch.ones(1)
    dist.all_reduce(x, group=dist.new_group([0, 1]))
    return x.item()


def test_ranks_make_groups_over_their_own_link_though_the_notebook_called_setup(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", loopback())  # as setup does
    run = launch(all_reduce_in_a_group, 2, network=VirtualNetwork(2, 1))
    assert run.results == [2.0, 2.0]


def test_ranks_of_one_host_do_not_load_its_link():
    run = launch(send_to_the_last, 2, (2 * MEBIBYTE,), network=VirtualNetwork(1, 2, 1e5))
    assert run.traffic.hosts[0].sent < 0.05 * MEBIBYTE


def test_a_deadlock_across_hosts_is_named_as_ever():
    with pytest.raises(DeadlockError, match=r"0 → 1 → 0|rank 0 waits") as caught:
        launch(receive_from_the_next, 2, network=VirtualNetwork(2, 1))
    assert [report.call for report in caught.value.reports] == ["recv", "recv"]


def test_loopback_has_no_traffic_to_show():
    assert launch(all_reduce, 2, (4,)).traffic is None


def test_a_network_of_another_size_than_the_world_is_refused():
    with pytest.raises(ValueError, match="2 hosts × 2 ranks = 4 is not world_size 3"):
        launch(all_reduce, 3, (4,), network=VirtualNetwork(2, 2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"hosts": 0}, "hosts is a whole number of at least 1, not 0"),
        ({"ranks_per_host": 2.0}, "ranks_per_host is a whole number"),
        ({"hosts": 33}, "33 hosts × 2 = 66 ranks are more than"),
        ({"bytes_per_second": 0}, "at least 10 000, not 0"),
    ],
)
def test_a_network_that_makes_no_sense_is_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        VirtualNetwork(**arguments)


def test_a_network_may_be_told_by_any_librarys_numbers():
    network = VirtualNetwork(np.int64(2), torch.tensor(1), np.float32(25e6))
    assert network == VirtualNetwork(2, 1, 25e6)
    assert [type(number) for number in vars(network).values()] == [int, int, float]


def test_a_missing_tool_is_a_sentence(monkeypatch):
    monkeypatch.setattr(wires, "_PATH", "/nowhere")
    with pytest.raises(OSError, match="the program ip is missing: apt-get install iproute2"):
        wires._run("ip", ["link"])


def test_a_kernel_that_refuses_is_a_sentence(tmp_path):
    """Forbid network namespaces for everything below one process, as some clusters do."""
    limit = "/proc/sys/user/max_net_namespaces"
    forbid = f"mount -t proc proc /proc && echo 0 > {limit} && exec {sys.executable} -c '{PROGRAM}'"
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount"]
    done = subprocess.run([*command, "sh", "-c", forbid], capture_output=True, text=True)
    assert done.stdout.startswith("no virtual network can be made here: "), done
    assert len(done.stdout.splitlines()) == 1


PROGRAM = "from byhand.runtime import why_no_network; print(why_no_network())"


def test_nothing_is_left_when_the_launching_process_is_killed(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(
        "import sys\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}\n"
        "from test_virtual_network import VirtualNetwork, launch, wait_for_ever\n"
        "launch(wait_for_ever, 4, network=VirtualNetwork())\n"
    )
    marked = {**os.environ, "VIRTUAL_NETWORK_TEST": str(tmp_path)}
    before = set(os.listdir("/sys/class/net"))
    process = subprocess.Popen([sys.executable, script], env=marked)
    # 4 ranks, 3 servers, it
    wait_until(lambda: len(carriers(str(tmp_path))) >= 8 or process.poll() is not None)
    assert process.poll() is None, "the launch did not start"
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not carriers(str(tmp_path)))
    assert set(os.listdir("/sys/class/net")) == before


def carriers(mark: str) -> list[int]:
    """Processes that were started with `mark` in their environment."""
    wanted, found = f"VIRTUAL_NETWORK_TEST={mark}".encode(), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:
            if wanted in environ.read():
                found.append(int(name))
    return found


def test_two_networks_stand_side_by_side_and_a_third_replaces_the_older():
    with Launcher() as launcher:
        for rate in (1e8, 2e8, 3e8, 1e8):
            run = launch_on(launcher, all_reduce, 2, (8,), network=VirtualNetwork(2, 1, rate))
            assert run.results[0][0] == 1.0
        assert len(launcher._networks) == 2
