"""Every way in which ranks' calls can fail to fit together ends in a sentence, in two seconds.

Each case is a program for `world_size` ranks and the words its sentence must hold.
"""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from byhand import DeadlockError, RankError, launch
from byhand.runtime import DeadlineError
from byhand.runtime.system import PORTABLE, STACK_SIGNAL

SECONDS = 2.0  # within which a deadlock is told; make bench takes the time


def returned_alone(rank, world_size):
    pass


def different_collectives(rank, world_size):
    x = torch.ones(4)
    if rank == 2:
        dist.broadcast(x, src=0)
    else:
        dist.all_reduce(x)


def different_shapes(rank, world_size):
    dist.all_reduce(torch.ones(3 if rank == 1 else 4))


def same_count_in_another_shape(rank, world_size):
    dist.all_reduce(torch.ones(2, 3) if rank == 1 else torch.ones(3, 2))


def different_dtypes(rank, world_size):
    dist.all_reduce(torch.ones(4, dtype=torch.int32 if rank == 1 else torch.float32))


def sum_against_max(rank, world_size):
    dist.all_reduce(torch.ones(4), op=dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)


def different_roots(rank, world_size):
    dist.broadcast(torch.ones(4), src=1 if rank == 1 else 0)


def one_call_fewer(rank, world_size):
    for _ in range(2 if rank == 3 else 3):
        dist.all_reduce(torch.ones(4))


def one_call_fewer_then_barrier(rank, world_size):
    for _ in range(1 if rank == 3 else 2):
        dist.all_reduce(torch.ones(4))
    dist.barrier()


def returned(rank, world_size):
    if rank == 0:
        return
    dist.barrier()


def receive_from_the_returned(rank, world_size):
    if rank == 0:
        dist.recv(torch.ones(4), src=1)


def receive_cycle(rank, world_size):
    x = torch.ones(4)
    dist.recv(x, src=(rank - 1) % world_size)
    dist.send(x, dst=(rank + 1) % world_size)


def partners_that_do_not_name_each_other(rank, world_size):
    x, following = torch.ones(4), (rank + 1) % world_size
    pending = dist.isend(x, dst=following)
    dist.recv(torch.empty(4), src=following)
    pending.wait()


def receive_cycle_beside_a_send_that_is_right(rank, world_size):
    x = torch.ones(4)
    if rank == 2:  # will receive from 0, once 1 is there
        dist.recv(x, src=1)
        return dist.recv(x, src=0)
    pending = dist.isend(x, dst=2) if rank == 0 else None
    dist.recv(torch.empty(4), src=1 - rank)
    dist.send(x, dst=1 - rank)
    if rank == 1:
        dist.send(x, dst=2)
    if pending:
        pending.wait()


def send_ring(rank, world_size):
    x = torch.ones(4)
    dist.send(x, dst=(rank + 1) % world_size)
    dist.recv(x, src=(rank - 1) % world_size)


def short_receive(rank, world_size):
    if rank == 0:
        dist.send(torch.ones(8), dst=1)
    elif rank == 1:
        dist.recv(torch.ones(4), src=0)


def long_receive(rank, world_size):
    if rank == 0:
        dist.send(torch.ones(2), dst=1)
    elif rank == 1:
        dist.recv(torch.ones(4), src=0)


def group_without_a_member(rank, world_size):
    group = dist.new_group([0, 1, 2])
    if rank in (0, 1):
        dist.all_reduce(torch.ones(4), group=group)


def groups_in_different_orders(rank, world_size):
    orders = [[0, 1], [2, 3]]
    for ranks in orders if rank < 2 else reversed(orders):
        dist.new_group(ranks)


def groups_of_the_same_ranks(rank, world_size):
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    for group in groups:
        dist.barrier(group=group)
    dist.all_reduce(torch.ones(1), group=groups[rank])


def the_default_group_and_the_last_of_three(rank, world_size):
    groups = [dist.new_group([0, 1]) for _ in range(3)]
    dist.barrier(group=groups[0])  # and nothing on the second
    dist.all_reduce(torch.ones(1), group=[None, groups[2]][rank])


def groups_that_their_members_alone_make(rank, world_size):
    if rank < 2:
        alone = {"use_local_synchronization": True}
        groups = [dist.new_group([0, 1], **alone) for _ in range(6)]
        dist.barrier(group=groups[0])
        dist.all_reduce(torch.ones(1), group=groups[[2, 4][rank]])


def groups_that_members_make_who_are_in_unequal_numbers_of_them(rank, world_size):
    dist.new_group([0, 1])  # rank 2 makes it too, and is not in it
    dist.new_group([0, 1, 2], use_local_synchronization=True)


def receive_of_nothing(rank, world_size):
    if rank == 0:
        dist.recv(torch.ones(1), 1)
    dist.barrier()


def receive_with_another_tag(rank, world_size):
    if rank == 0:
        dist.recv(torch.ones(1), 1, tag=2)
    else:
        dist.isend(torch.ones(1), 0, tag=1)
    dist.barrier()


def returned_after_another_tag(rank, world_size):
    if rank == 0:
        dist.recv(torch.ones(1), 1, tag=2)
    else:
        dist.isend(torch.ones(1), 0, tag=1)


def barrier_against_all_reduce(rank, world_size):
    if rank == 0:
        dist.barrier()
    else:
        dist.all_reduce(torch.ones(1))


def all_to_all_splits(rank, world_size):
    send = [1] * world_size
    receive = [2 if rank == 0 else 1] + [1] * (world_size - 1)
    arrive, leave = torch.empty(sum(receive), 3), torch.ones(world_size, 3)
    dist.all_to_all_single(arrive, leave, receive, send)


def left_the_group(rank, world_size):
    if rank == 0:
        dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()
    time.sleep(1)


def one_call_left_out(rank, world_size):
    if rank != 1:
        dist.all_reduce(torch.ones(4, dtype=torch.int64))
    dist.all_reduce(torch.ones(4))


LEFT_OUT = one_call_left_out.__code__.co_firstlineno

CASES = [
    (different_collectives, 4, ("rank 2 calls broadcast", "ranks 0, 1 and 3 call all_reduce")),
    (different_shapes, 2, ("shape [3]", "shape [4]")),
    (same_count_in_another_shape, 2, ("shape [2, 3]", "shape [3, 2]")),
    (different_dtypes, 2, ("int32", "float32")),
    (
        one_call_left_out,
        3,
        (
            "rank 1 passes dtype float32 to all_reduce where ranks 0 and 2 pass dtype int64",
            f"rank 1 stands at test_deadlocks.py:{LEFT_OUT + 3}, ranks 0 and 2 stand at "
            f"test_deadlocks.py:{LEFT_OUT + 2}: maybe rank 1 left out a call",
        ),
    ),
    (sum_against_max, 2, ("max", "sum")),
    (different_roots, 3, ("rank 1 names root 1", "ranks 0 and 2 name root 0")),
    (one_call_fewer, 4, ("call 3", "rank 3 returned after 2 such calls")),
    (one_call_fewer_then_barrier, 4, ("rank 3 calls barrier", "call all_reduce (call 2")),
    (returned, 4, ("ranks 1, 2 and 3 wait in barrier", "rank 0 returned after 0 such calls")),
    (left_the_group, 3, ("rank 0 waited in all_reduce", "ranks 1 and 2 had not joined")),
    (receive_from_the_returned, 2, ("rank 0 waits to receive from rank 1", "returned")),
    (receive_cycle, 2, ("receives in a cycle 0 → 1 → 0",)),
    (receive_cycle, 4, ("receives in a cycle", "0 → 3 → 2 → 1 → 0")),
    (
        receive_cycle_beside_a_send_that_is_right,
        3,
        ("receives in a cycle 0 → 1 → 0", "before it sends. Let one of them send first"),
    ),
    (
        partners_that_do_not_name_each_other,
        3,
        (
            "receives in a cycle",
            "nobody receives what rank 0 has sent to rank 1",
            "name each other",
        ),
    ),
    (send_ring, 4, ("sends in a cycle 0 → 1 → 2 → 3 → 0",)),
    (short_receive, 2, ("[8] float32", "[4] float32", "rank 0 sends", "rank 1")),
    (long_receive, 2, ("[2] float32", "[4] float32")),
    (group_without_a_member, 4, ("group [0, 1, 2]", "rank 2 returned after 0 such calls")),
    (groups_in_different_orders, 4, ("create group [2, 3]", "create group [0, 1]")),
    (
        groups_of_the_same_ranks,
        2,
        (
            "rank 0 waits in all_reduce on the 1st new group [0, 1]",
            "rank 1 waits in all_reduce on the 2nd new group [0, 1]. Each needs a call",
        ),
    ),
    (
        the_default_group_and_the_last_of_three,
        2,
        (
            "rank 0 waits in all_reduce on the default group [0, 1]",
            "rank 1 waits in all_reduce on the 3rd new group [0, 1]. Each needs a call",
        ),
    ),
    (
        groups_that_their_members_alone_make,
        3,
        (
            "rank 0 waits in all_reduce on the 3rd new group [0, 1]",
            "rank 1 waits in all_reduce on the 5th new group [0, 1]. Each needs a call",
        ),
    ),
    (
        groups_that_members_make_who_are_in_unequal_numbers_of_them,
        3,
        (
            "rank 2 creates group [0, 1, 2] after 0 others where ranks 0 and 1 create group "
            "[0, 1, 2] after 1 other (call 1 on group [0, 1, 2]). Either all ranks create",
        ),
    ),
    (
        receive_of_nothing,
        2,
        ("0 → 1 → 0", "Nothing is on its way from rank 1 to rank 0. Every send and every receive"),
    ),
    (receive_with_another_tag, 2, ("Rank 1 waits after a send with tag 1, not with tag 2.",)),
    (returned_after_another_tag, 2, ("rank 1, which returned after a send with tag 1, not with",)),
    (barrier_against_all_reduce, 2, ("barrier", "all_reduce")),
    (all_to_all_splits, 2, ("sends 3 elements to rank 0", "expects 6")),
]


@pytest.mark.parametrize(
    ("program", "world_size", "words"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES]
)
def test_a_deadlock_is_named_by_rank_call_line_and_reason(program, world_size, words):
    launch(returned_alone, 1)  # so that the fork server is there
    with pytest.raises(DeadlockError) as caught:
        launch(program, world_size, deadline=30)
    error = caught.value
    for word in words:
        assert word in error.reason, f"{word!r} is not in: {error.reason}"
    assert error.rule.endswith(".")
    assert not set(error.rule) & set("0123456789[]:"), error.rule
    assert [report.rank for report in error.reports] == list(range(world_size))
    lines = [report.source for report in error.reports if report.call]
    assert lines, error
    assert all(line.startswith("test_deadlocks.py:") for line in lines), error


def groups_of_many_kinds(rank, world_size):
    alone = {"use_local_synchronization": True}
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    mesh["a", "b"]._flatten("ab")
    groups = [dist.new_subgroups(2)[0], dist.new_group([3, 2, 1, 0], **alone)]
    dist.new_group([0, 1, 3])
    if rank != 2:
        groups.append(dist.new_group([0, 1, 3], **alone))
    from torch.testing._internal.distributed import fake_pg  # noqa: F401  # registers its backend

    dist.new_group([0, 1, 2, 3], backend="fake", **alone)  # as with NCCL, nobody waits here
    for group in groups:
        dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()


def test_groups_that_meet_are_no_deadlock():
    launch(groups_of_many_kinds, 4, deadline=30)


def unfit(rank, world_size, how):
    x, pair, whole = torch.ones(2), [torch.ones(2)] * 2, torch.ones(4)
    if how == "reduce-scatter":
        dist.reduce_scatter_tensor(torch.empty(10), torch.ones(18))
    elif how == "gather":
        dist.all_gather_into_tensor(torch.empty(5), x)
    elif how == "dtype":
        dist.all_gather_into_tensor(whole, x.double())
    elif how == "gather lists":
        dist.all_gather([*pair, x], x)
    elif how == "scatter lists":
        dist.reduce_scatter(torch.ones(3), pair)
    elif how == "splits":
        dist.all_to_all_single(whole, whole.clone(), [2, 2], [1, 2])
    elif how == "number of splits":
        dist.all_to_all_single(whole, whole.clone(), [4], [4])
    elif how == "negative":
        dist.all_to_all_single(whole, whole.clone(), [-2, 6], [2, 2])
    elif how == "columns":
        dist.all_to_all_single(torch.empty(4, 3), torch.ones(4, 2))
    elif how == "splits of a number":
        dist.all_to_all_single(x.sum(), x.sum(), [1, 0], [1, 0])
    elif how == "no tensors":
        dist.all_to_all([], [])
    else:
        dist.all_to_all(pair, [*pair, x])


UNFIT = {
    "reduce-scatter": "reduce_scatter_tensor cannot put [18] float32 into [10] float32 on 2 ranks",
    "gather": "all_gather_into_tensor cannot put [2] float32 into [5] float32 on 2 ranks",
    "dtype": "cannot put [2] float64 into [4] float32 on 2 ranks. All are of one dtype",
    "gather lists": "all_gather cannot put [2] float32 into 3 tensors of [2] float32 on 2 ranks",
    "scatter lists": "reduce_scatter cannot put 2 tensors of [2] float32 into [3] float32",
    "splits": "with output splits [2, 2] and input splits [1, 2]. Splits are one number of rows",
    "number of splits": "with output splits [4] and input splits [4]",
    "negative": "with output splits [-2, 6] and input splits [2, 2]",
    "columns": "all_to_all_single cannot put [4, 2] float32 into [4, 3] float32 on 2 ranks",
    "splits of a number": "all_to_all_single cannot put [] float32 into [] float32 on 2 ranks",
    "no tensors": "There is one output and one input for each of 2 ranks",
    "all-to-all lists": "all_to_all cannot put 3 tensors of [2] float32 into 2 tensors of [2]",
}


@pytest.mark.parametrize("how", UNFIT)
def test_sizes_that_a_collective_cannot_take_are_told_in_our_words(how):
    with pytest.raises(RankError) as failure:
        launch(unfit, 2, (how,))
    assert UNFIT[how] in failure.value.sentence
    assert "at test_deadlocks.py:" in failure.value.sentence


def talk_to_itself(rank, world_size, how):
    x, pair = torch.ones(2), dist.new_group([1, 2])
    if rank == 1 and how == "receives":
        dist.recv(x, group=pair, group_src=0)  # global rank 1
    elif rank == 1:
        dist.batch_isend_irecv([dist.P2POp(dist.isend, x, rank)])


@pytest.mark.parametrize(("how", "told"), [("receives", "receives from"), ("sends", "sends to")])
def test_a_rank_that_talks_to_itself_is_told_so(how, told):
    with pytest.raises(RankError) as failure:
        launch(talk_to_itself, 3, (how,))
    assert f"rank 1 {told} itself: what a rank has needs no message" in failure.value.sentence


def ends_by_a_refusal(rank, world_size, how):
    dist.barrier()
    try:
        dist.all_gather([torch.empty(2)] * world_size, torch.ones(2 + rank))
    except RuntimeError:
        if how == "raises":
            raise
        raise SystemExit(1) from None


@pytest.mark.parametrize("how", ["raises", "exits"])
def test_a_refusal_that_ends_a_rank_is_told_by_what_the_others_pass(how):
    with pytest.raises(DeadlockError, match="The shape must be the same on all"):
        launch(ends_by_a_refusal, 2, (how,))


def names_nobody(rank, world_size, op, named, is_in_pair):
    x, make = torch.ones(2), getattr(dist, op)
    if not is_in_pair:
        return make(x, named)
    pair = dist.new_group([1, 2])
    if rank == 0:
        return None
    group_end = "group_dst" if op == "send" else "group_src"
    return make(x, group=pair, **{group_end: named})


@pytest.mark.parametrize("op", ["send", "recv", "broadcast"])
@pytest.mark.parametrize(("named", "is_in_pair"), [(3, False), (-1, False), (2, True), (-1, True)])
def test_a_rank_that_the_group_does_not_have_is_named_with_those_it_has(op, named, is_in_pair):
    with pytest.raises(RankError, match=r"raised ValueError at test_deadlocks\.py:") as caught:
        launch(names_nobody, 3, (op, named, is_in_pair), deadline=20)
    theirs = "ranks 0 and 1" if is_in_pair else "ranks 0, 1 and 2"
    assert f": {op} names rank {named}, but its group has {theirs}." in caught.value.sentence


def raises_while_others_wait(rank, world_size):
    if rank == 1:
        raise KeyError("lost")
    dist.barrier()


def exits_while_others_wait(rank, world_size):
    if rank == 1:
        os._exit(3)
    dist.barrier()


def segfaults(rank, world_size):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    dist.barrier()


def leaves_with_sys_exit(rank, world_size):
    if rank == 1:
        raise SystemExit(0)
    dist.barrier()


def test_a_rank_that_raises_is_named_with_its_traceback_and_the_others_calls():
    with pytest.raises(RankError, match="rank 1 raised KeyError") as caught:
        launch(raises_while_others_wait, 3)
    error = caught.value
    assert error.rank == 1
    assert error.exit_code is None
    assert "test_deadlocks.py" in error.traceback
    assert "lost" in error.traceback
    assert error.reports[0].call == "barrier"


def is_refused_while_others_wait(rank, world_size, is_wrapped):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        try:
            if rank == 1:
                socket.create_connection(deaf.getsockname())
        except OSError as error:
            if is_wrapped:
                raise RuntimeError(f"no data: {error}") from None
            raise
    dist.barrier()


@pytest.mark.parametrize(("is_wrapped", "name"), [(False, "ConnectionRefused"), (True, "Runtime")])
def test_a_connection_of_the_readers_own_that_is_refused_is_the_ranks_error(is_wrapped, name):
    with pytest.raises(RankError, match=f"rank 1 raised {name}Error") as caught:
        launch(is_refused_while_others_wait, 2, (is_wrapped,))
    assert "Connection refused" in caught.value.traceback


def test_a_rank_that_exits_is_named_by_its_code():
    with pytest.raises(RankError, match=r"rank 1 died: .* exited with code 3") as caught:
        launch(exits_while_others_wait, 3)
    assert caught.value.exit_code == 3
    assert caught.value.reports[2].call == "barrier"


def test_a_segfault_is_named_by_its_signal_and_line():
    with pytest.raises(RankError, match=r"(?s)SIGSEGV .*test_deadlocks\.py:") as caught:
        launch(segfaults, 2)
    assert caught.value.exit_code == -signal.SIGSEGV


def test_sys_exit_on_a_rank_is_an_error_and_not_a_result():
    with pytest.raises(RankError, match="rank 1 raised SystemExit"):
        launch(leaves_with_sys_exit, 2)


def computes_while_others_wait(rank, world_size):
    until = time.monotonic() + 2 * SECONDS
    while rank == 1 and time.monotonic() < until:
        torch.ones(100) @ torch.ones(100)
    dist.barrier()
    return rank


def test_long_compute_while_others_wait_is_no_deadlock():
    assert launch(computes_while_others_wait, 2).results == [0, 1]


def loops_for_ever(rank, world_size):
    while rank == 1:
        pass


def test_the_deadline_names_the_late_rank_and_its_line():
    sentence = "rank 1 did not return within the deadline of 1 s"
    with pytest.raises(DeadlineError, match=sentence) as caught:
        launch(loops_for_ever, 2, deadline=1)
    assert caught.value.reports[1].source.startswith("test_deadlocks.py:")
    assert isinstance(caught.value, TimeoutError)


def returns_without_a_wait(rank, world_size):
    if rank == 0:
        dist.isend(torch.ones(1 << 21), 1)
    else:
        time.sleep(1)  # gloo sends only when somebody receives
        dist.recv(torch.empty(1 << 21), 0)


def test_the_deadline_names_a_send_whose_rank_returned_without_waiting_for_it():
    line = returns_without_a_wait.__code__.co_firstlineno + 2
    with pytest.raises(DeadlineError, match="rank 1 did not return") as caught:
        launch(returns_without_a_wait, 2, deadline=3)
    words = f"its isend to rank 1 (test_deadlocks.py:{line}), so what it sent may be lost. Call"
    assert f"rank 0 returned without waiting for {words} wait()" in caught.value.sentence


def answers_late(rank, world_size):
    signal.pthread_sigmask(signal.SIG_BLOCK, {STACK_SIGNAL})
    while STACK_SIGNAL not in signal.sigpending():
        pass
    time.sleep(0.3)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {STACK_SIGNAL})
    loops_for_ever(1, world_size)


@pytest.mark.skipif(PORTABLE, reason="a thread of the rank's own would answer at once")
def test_a_rank_that_says_late_where_it_is_is_waited_for():
    with pytest.raises(DeadlineError) as caught:
        launch(answers_late, 2, deadline=1, setup=False)  # without threads of gloo
    assert all(report.source.startswith("test_deadlocks.py:") for report in caught.value.reports)
