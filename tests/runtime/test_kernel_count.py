"""What ranks say they sent, held against the kernel's count of it."""

import re
import threading

import pytest
import torch
import torch.distributed as dist

from byhand.runtime import Launcher, TamperedError
from byhand.runtime.walls import isolation, kernel_count

pytestmark = pytest.mark.skipif(
    bool(isolation.why_no_bubblewrap()), reason=str(isolation.why_no_bubblewrap())
)
OPERATIONS = (
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather",
    "reduce_scatter",
    "reduce_scatter_of_a_list",
    "scatter",
    "gather",
    "all_to_all",
    "barrier",
    "monitored_barrier",
    "send",
    "all_reduce_in_a_thread",
)


@pytest.fixture(scope="module")
def question():
    with Launcher(trusted=False) as launcher:
        yield launcher.fresh()


def in_a_thread(function, *args) -> None:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


def operate(rank: int, ranks: int, operation: str, items: int) -> None:
    x, many = torch.ones(items), [torch.ones(items) for _ in range(ranks)]
    if operation == "send":
        return dist.send(x, 1) if rank == 0 else dist.recv(x, 0) if rank == 1 else None
    root = ranks - 1
    {
        "all_reduce": lambda: dist.all_reduce(x),
        "all_reduce_in_a_thread": lambda: in_a_thread(dist.all_reduce, x),
        "broadcast": lambda: dist.broadcast(x, 1),
        "reduce": lambda: dist.reduce(x, root),
        "all_gather": lambda: dist.all_gather(many, x),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(x, torch.cat(many)),
        "reduce_scatter_of_a_list": lambda: dist.reduce_scatter(x, many),
        "scatter": lambda: dist.scatter(x, many if rank == 0 else None, 0),
        "gather": lambda: dist.gather(x, many if rank == 0 else None, 0),
        "all_to_all": lambda: dist.all_to_all_single(torch.cat(many), torch.cat(many)),
        "barrier": dist.barrier,
        "monitored_barrier": dist.monitored_barrier,
    }[operation]()


def watch_the_audit(monkeypatch) -> list[tuple]:
    """The (counters, bounds) that the audit compares, as it goes."""
    seen, complaint = [], kernel_count.complaint
    monkeypatch.setattr(
        kernel_count, "complaint", lambda *about: seen.append(about) or complaint(*about)
    )
    return seen


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_call_puts_on_the_wire_what_the_model_says_to_the_byte(question, operation, monkeypatch):
    seen = watch_the_audit(monkeypatch)
    for ranks, items in ((2, 0), (2, 1), (3, 7), (3, 100_000), (2, 1_500_001)):
        question.launch(operate, ranks, (operation, items))
        carried, bounds = seen[-1][:2]
        most = bounds.most + kernel_count.PAIR * bounds.pairs
        assert most == pytest.approx(bounds.least)
        assert carried.opened == bounds.pairs
        if carried.repeated == 0:
            assert bounds.least - 1 <= carried.payload <= most + 1


def much(rank: int, ranks: int) -> bool:
    """Communicate in a thousand large packets and some small ones; whether TCP may send twice."""
    for items in (2_000_000, 4) * 5:
        dist.all_reduce(torch.ones(items))
    return open("/proc/sys/net/ipv4/tcp_sack").read().strip() != "0"


def test_what_is_late_on_loopback_is_sent_once(question, monkeypatch):
    """Packets overtake each other on several cores; TCP sent them again and reported the gaps."""
    seen = watch_the_audit(monkeypatch)
    for _ in range(5):
        if any(question.launch(much, 3).results):
            pytest.skip("this kernel does not let a question's network change TCP's settings")
        carried, bounds = seen[-1]
        assert carried.repeated == 0
        assert carried.payload == pytest.approx(bounds.least, abs=1)


def patched(rank: int, ranks: int, log: list, body: str) -> None:
    """Run `body` with the recorder off, and log these calls as if they had been made."""
    from torch.utils._python_dispatch import _disable_current_modes

    from byhand.runtime.trace import recorder

    active = recorder._active
    with _disable_current_modes():
        recorder._active = None
        exec(body, {"dist": dist, "torch": torch, "rank": rank, "ranks": ranks})
        recorder._active = active
    for index, fields in enumerate(log):
        source = {"source": ["x", 1], "group": list(range(ranks)), "group_name": "0"}
        active.write("call", index, fields | source, 1.0)
        active.write("wait", index, 1.0, False)
        active.write("awake", index, 1.0)


ALL_REDUCE = {"op": "all_reduce", "payload": 40, "shape": [10], "dtype": "float32"}
FORGED = {
    "a call that was never made": ([ALL_REDUCE], ""),
    "a call that was hidden": ([], "dist.all_reduce(torch.ones(10))"),
    "another call than was made": (
        [ALL_REDUCE],
        "dist.all_gather([torch.ones(10) for _ in range(ranks)], torch.ones(10))",
    ),
    "a smaller one than was made": ([ALL_REDUCE], "dist.all_reduce(torch.ones(5000))"),
    "datagrams": (
        [],
        "import socket; s = socket.socket(2, 2); s.bind(('127.0.0.1', 4000 + rank))\n"
        "s.sendto(b'x', ('127.0.0.1', 4000 + rank)); s.recv(1)",
    ),
    "a connection of its own": (
        [],
        "import socket; s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname()); c.send(b'x')",
    ),
    "a connection beside refused ones, whose headers are shorter": (
        [],
        "import socket; s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname()); c.send(bytes(384))\n"
        "for _ in range(100): socket.socket().connect_ex(('127.0.0.1', 9))",
    ),
    "a connection beside others that are asked for twice": (
        [ALL_REDUCE],
        "import socket, time; dist.all_reduce(torch.ones(10))\n"
        "s = socket.create_server(('127.0.0.1', 0), backlog=1)\n"
        "c = socket.create_connection(s.getsockname()); c.send(bytes(1000))\n"
        "asking = [socket.socket() for _ in range(9)]\n"
        "for end in asking: end.setblocking(False); end.connect_ex(s.getsockname())\n"
        "time.sleep(1.2)",
    ),
    "a connection beside an all-to-all of more rows than ranks, and of less than none": (
        [{"op": "all_to_all", "payload": 8, "sends": [2, -1] * 2000, "dtype": "float32"}],
        "import socket; s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname()); c.send(bytes(2000))",
    ),
    "a connection beside an all-reduce that claims a list": (
        [ALL_REDUCE | {"listed": True}],
        "import socket; dist.all_reduce(torch.ones(10))\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname()); c.send(bytes(1325))",
    ),
    "a connection beside groups that nobody made": (
        [{"op": "new_group", "detail": "group 0 1 2"}] * 20,
        "import socket; s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname()); c.send(bytes(300))",
    ),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_log_that_says_other_than_the_kernel_is_tampered_with(question, forgery, monkeypatch):
    seen, message = watch_the_audit(monkeypatch), ""
    for _ in range(5):  # a repeat that TCP makes of itself, on a busy machine, has room for some
        message = complaint_about(question, forgery)
        if message:
            break
        assert seen[-1][0].repeated > seen[-1][0].asked_again, seen[-1]
    assert re.search(r"kernel counted|datagrams past", message), message


def complaint_about(question, forgery: str) -> str:
    try:
        question.launch(patched, 3, FORGED[forgery])
    except TamperedError as error:
        return str(error)
    return ""


def leave_in_the_store(rank: int, ranks: int) -> None:
    dist.distributed_c10d._get_default_store().set(f"from {rank}", bytes(100))


def test_a_value_left_where_ranks_meet_is_tampering(question):
    with pytest.raises(TamperedError, match="in the file they meet in"):
        question.launch(leave_in_the_store, 3)


def make_groups(rank: int, ranks: int) -> None:
    for members in ([0], [0, 1], [1, 2], [0, 1, 2]):
        group = dist.new_group(members)
        if rank in members:
            dist.barrier(group)
    dist.barrier(dist.new_group([rank], use_local_synchronization=True))


def test_groups_may_leave_their_addresses_there(question):
    question.launch(make_groups, 3)


def test_a_log_that_says_the_truth_is_not(question):
    truth = ([ALL_REDUCE], "dist.all_reduce(torch.ones(10))")
    assert question.launch(patched, 3, truth).ledger.count("all_reduce") == 3


def write_and_look(rank: int, ranks: int, place: str) -> list[str]:
    import os

    open(f"{place}/from-{rank}", "w").close()
    dist.barrier()
    return sorted(os.listdir(place))


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "."])
def test_a_rank_sees_no_file_of_another(question, place):
    run = question.launch(write_and_look, 2, (place,))
    assert [[name for name in names if "from" in name] for names in run.results] == [
        ["from-0"],
        ["from-1"],
    ]


def trace_the_other(rank: int, ranks: int) -> str:
    import ctypes
    import errno
    import os

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(4, 1, 0, 0, 0)  # this rank would let others read its memory
    process_ids = [None] * ranks
    dist.all_gather_object(process_ids, os.getpid())
    attached = libc.ptrace(0x4206, process_ids[1 - rank], None, None)
    return errno.errorcode[ctypes.get_errno()] if attached else "attached"


def test_a_rank_cannot_trace_another(question):
    assert question.launch(trace_the_other, 2).results == ["EPERM"] * 2


def use_abstract_sockets(rank: int, ranks: int) -> str:
    import socket

    if rank == 0:
        server = socket.socket(socket.AF_UNIX)
        server.bind("\0byhand test")
        server.listen()
    dist.barrier()
    answer = "served"
    if rank == 1:
        try:
            socket.socket(socket.AF_UNIX).connect("\0byhand test")
            answer = "connected"
        except OSError as error:
            answer = type(error).__name__
    dist.barrier()
    return answer


def test_a_rank_cannot_reach_an_abstract_socket_of_another(question):
    from byhand.runtime.walls import landlock

    if landlock.version() < landlock.SCOPES_SINCE:
        pytest.skip("this kernel's Landlock is too old to keep abstract sockets apart")
    assert question.launch(use_abstract_sockets, 2).results == ["served", "PermissionError"]
