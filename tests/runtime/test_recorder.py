"""What the recorder sees: every communication call, whoever makes it; memory where asked for."""

import contextlib
import time
from datetime import timedelta
from itertools import accumulate, pairwise

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity

from byhand import DeadlockError, launch
from byhand.collectives.with_torch import REDUCE_SCATTER
from byhand.runtime import held_bytes


def words(run, rank=0):
    """The rank's calls, with their reductions."""
    return [f"{e.op} {e.reduce_op}".strip() for e in run.ledger.select(rank=rank)]


def parallel_loss(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    logits = distribute_tensor(torch.randn(4, 8, requires_grad=True), mesh, [Shard(1)])
    dist.barrier()
    with loss_parallel():
        torch.nn.functional.cross_entropy(logits, torch.tensor([1, 2, 3, 4])).backward()


def test_the_all_reduces_of_loss_parallel_are_counted():
    calls = words(launch(parallel_loss, 2))
    assert calls[calls.index("barrier") + 1 :] == ["all_reduce max", *2 * ["all_reduce sum"]]


def redistributes(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    x = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    dist.barrier()
    x.sum().redistribute(placements=[Replicate()]).to_local()
    (x @ x).to_local()


def test_implicit_redistributions_of_a_dtensor_are_counted():
    calls = words(launch(redistributes, 2))
    assert calls[calls.index("barrier") + 1 :] == ["all_reduce sum", "all_gather"]


def sharded_model(*widths):
    layers = [torch.nn.Linear(*pair) for pair in pairwise(widths)]
    model = torch.nn.Sequential(*layers)
    for layer in layers:
        fully_shard(layer)
    return fully_shard(model)


def one_rank_clips(rank, world_size):
    model = sharded_model(8, 8, 8)
    model(torch.ones(2, 8)).sum().backward()
    if rank == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()


def test_a_rank_that_clips_sharded_gradients_alone_is_a_deadlock():
    with pytest.raises(DeadlockError, match=r"rank 0 waits in all_reduce .* rank 1 returned"):
        launch(one_rank_clips, 2, deadline=200)


def all_to_all(rank, world_size):
    sends = [[1, 3], [2, 0]][rank]
    receives = [[1, 2], [3, 0]][rank]
    x = torch.ones(sum(sends), 2, requires_grad=True)
    y = functional.all_to_all_single_autograd(x, receives, sends, dist.group.WORLD)
    y.sum().backward()
    return x.grad


def test_an_uneven_all_to_all_sends_all_but_its_own_split():
    run = launch(all_to_all, 2)
    forward = [run.ledger.select("all_to_all", rank)[0] for rank in range(2)]
    assert [event.payload_bytes for event in forward] == [4 * 8, 2 * 8]
    assert [event.sent_bytes for event in forward] == [3 * 8, 2 * 8]
    assert [event.waited > 0 for event in forward] == [True, True]
    assert [grad.sum().item() for grad in run.results] == [8.0, 4.0]


def all_to_all_of_other_shapes(rank, world_size):
    flat = torch.empty(3 * world_size)
    dist.all_to_all_single(flat, torch.full((world_size, 3), float(rank)))
    rows = torch.empty(world_size, 3)
    dist.all_to_all_single(rows, flat, [1] * world_size, [3] * world_size)
    return flat.tolist(), rows.tolist()


def test_an_all_to_all_counts_elements_whatever_the_shapes_are():
    run = launch(all_to_all_of_other_shapes, 2)
    assert run.results[0] == ([0.0] * 3 + [1.0] * 3, [[0.0] * 3] * 2)
    assert {event.sends for event in run.ledger.events} == {(3, 3)}
    assert {event.sent_bytes for event in run.ledger.events} == {3 * 4}


def calls_on_next_to_nothing(rank, world_size):
    dist.all_to_all_single(torch.zeros(()), torch.ones(()))
    with pytest.raises(NotImplementedError, match="There were no tensor arguments"):
        dist.all_reduce_coalesced([])


def test_calls_on_a_number_or_on_no_tensors_are_left_to_torch():
    assert words(launch(calls_on_next_to_nothing, 2)) == ["all_to_all"]


def groups_of_any_numbers(rank, world_size):
    for ranks in (np.arange(world_size), torch.arange(world_size), iter(range(world_size))):
        dist.all_reduce(torch.ones(1), group=dist.new_group(ranks))
    near = dist.new_group(np.arange(world_size), use_local_synchronization=True)
    dist.all_reduce(torch.ones(1), group=near)
    for ranks in ([0, 0, 1], [0, 1, -1], [0, 1, 2]):
        with pytest.raises(ValueError, match=r"duplicate|out of range|less or equal"):
            dist.new_group(ranks, use_local_synchronization=True)


def test_a_groups_ranks_may_be_any_librarys_numbers_and_torch_refuses_what_are_none():
    run = launch(groups_of_any_numbers, 2)
    assert {event.group for event in run.ledger.events} == {(0, 1)}
    assert words(run) == ["all_reduce sum"] * 4


def goes_on_after_a_refused_call(rank, world_size):
    with contextlib.suppress(RuntimeError, ValueError):
        REDUCE_SCATTER(torch.ones(3), torch.ones(5))
    if rank == 0:
        time.sleep(3)  # longer than a deadlock takes to be found
    dist.barrier()


def test_a_rank_that_goes_on_after_a_refused_call_does_not_wait_in_it():
    run = launch(goes_on_after_a_refused_call, 2)
    assert words(run) == ["barrier"]


def falls_back(rank, world_size, how):
    outputs = [torch.empty(r + 1) for r in range(world_size)]
    with contextlib.suppress(RuntimeError):
        if how == "all of unequal shapes" or (how == "a probe of one rank" and rank == 0):
            dist.all_gather(outputs, torch.ones(rank + 1))
        elif how == "a message" and rank == 0:
            dist.send(torch.ones(4).to_sparse(), 1)
    if rank == 0:
        time.sleep(1)  # longer than a deadlock takes to be found
    dist.all_reduce(torch.ones(1000))
    dist.send(torch.ones(2), 1) if rank == 0 else dist.recv(torch.empty(2), 0)


@pytest.mark.parametrize("how", ["all of unequal shapes", "a probe of one rank", "a message"])
def test_a_call_that_is_refused_and_caught_was_never_made(how):
    run = launch(falls_back, 2, (how,))
    assert words(run) == ["all_reduce sum", "send"]
    assert words(run, rank=1) == ["all_reduce sum", "recv"]
    assert run.ledger.sent_bytes() == 2 * 4000 + 8


def helps_while_a_call_is_late(rank, world_size):
    if rank == 1:
        dist.recv(torch.empty(3), 0)
        dist.all_reduce(torch.ones(3))
        return None
    work = dist.all_reduce(torch.ones(3), async_op=True)
    with contextlib.suppress(RuntimeError):
        work.wait(timedelta(milliseconds=50))
    time.sleep(1)  # longer than a deadlock takes to be found
    dist.send(torch.ones(3), 1)
    return work.wait()


def test_a_rank_that_goes_on_after_a_time_out_does_not_wait_in_the_call():
    run = launch(helps_while_a_call_is_late, 2)
    late, sent = run.ledger.select(rank=0)
    assert (late.op, sent.op) == ("all_reduce", "send")
    assert late.wait_start > sent.wait_end  # the last of its two waits


def helps_when_nobody_comes(rank, world_size, seconds):
    if rank == 1:
        dist.recv(torch.empty(3), 0)
        dist.all_reduce(torch.ones(3))
        return None
    work = dist.all_reduce(torch.ones(3), async_op=True)
    with pytest.raises(RuntimeError):
        work.wait(seconds)
    dist.send(torch.ones(3), 1)
    return work.wait()


@pytest.mark.parametrize("second", [timedelta(seconds=1), 1.0])  # longer than to find a deadlock
def test_a_rank_that_waits_with_a_time_out_of_its_own_may_go_on(second):
    run = launch(helps_when_nobody_comes, 2, (second,))
    assert words(run) == ["all_reduce sum", "send"]


def calls_the_roll(rank, world_size, limit):
    if rank == 0:
        with pytest.raises(RuntimeError, match="Rank 1 failed to pass monitoredBarrier"):
            dist.monitored_barrier(timeout=limit)
        return "rank 1 has left"
    return None


def test_a_monitored_barrier_with_a_time_out_of_its_own_may_find_who_has_left():
    run = launch(calls_the_roll, 2, (timedelta(seconds=1),))
    assert run.results[0] == "rank 1 has left"


def test_the_default_time_out_of_a_monitored_barrier_only_ends_a_hang():
    with pytest.raises(DeadlockError, match=r"rank 0 waits in barrier .* rank 1 returned"):
        launch(calls_the_roll, 2, (None,))


def functional_calls(rank, world_size):
    group = dist.group.WORLD
    functional.all_reduce(torch.ones(3), "sum", group).wait()
    functional.reduce_scatter_tensor(torch.ones(4), "max", 0, group).wait()
    with dist._coalescing_manager():
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(5))


def test_functional_and_coalesced_calls_are_recorded_once_each_with_their_line():
    run = launch(functional_calls, 2)
    assert words(run) == ["all_reduce sum", "reduce_scatter max", "all_reduce"]
    assert [event.payload_bytes for event in run.ledger.select(rank=0)] == [12, 16, 32]
    assert all(event.source.startswith("test_recorder.py:") for event in run.ledger.events)


def profiled_step(rank, world_size, widths, root_only, kept):
    """Two steps under torch's profiler; the most bytes that it saw held."""
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profile:
        model = torch.nn.Sequential(*(torch.nn.Linear(*pair) for pair in pairwise(widths)))
        for module in [model] if root_only else [*model, model]:
            fully_shard(module, reshard_after_forward=not kept)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(2):
            model(torch.ones(1, widths[0])).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    events = [
        event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    events.sort(key=lambda event: event.start_ns())
    return max(accumulate(event.nbytes() for event in events))


@pytest.mark.parametrize(("root_only", "kept"), [(False, False), (False, True), (True, False)])
def test_the_peak_under_fsdp_is_that_of_torchs_profiler(root_only, kept):
    over = []
    for _ in range(3):
        run = launch(profiled_step, 4, ([256] * 5, root_only, kept), memory=True)
        over += [
            theirs / ours - 1 for ours, theirs in zip(run.peak_bytes, run.results, strict=True)
        ]
        if min(over) < 1e-3:
            break
    # The profiler also sees gloo's own copies, for as long as gloo's threads keep them.
    assert -1e-3 < min(over) < 1e-3, over


def grows_a_storage(rank, world_size):
    storage = torch.empty(100, dtype=torch.uint8).untyped_storage()
    storage.resize_(1_000_000)
    storage.resize_(0)
    return torch.ones(500, dtype=torch.uint8)


def test_a_storage_that_is_resized_counts_as_large_as_it_was_at_most():
    assert launch(grows_a_storage, 1, memory=True).peak_bytes == [1_000_000]


def waits_for_the_future(rank, world_size, how):
    work = dist.all_reduce(torch.ones(1), async_op=True)
    future = work.get_future()
    if how == "then":
        future = future.then(lambda done: done.value())
    future.wait()
    forgotten = dist.all_reduce(torch.ones(1), async_op=True)
    forgotten.get_future()
    dist.barrier()


@pytest.mark.parametrize("how", ["at once", "then"])
def test_waiting_for_the_future_of_a_call_is_waiting_for_the_call(how):
    run = launch(waits_for_the_future, 2, (how,))
    waited = [event.wait_end is not None for event in run.ledger.select(rank=0)]
    assert waited == [True, False, True]


def holds_one_tensor_at_a_time(rank, world_size, how):
    for _ in range(20):
        x = torch.ones(25_000)
        work = dist.all_reduce(x, async_op=True)
        if how == "then":
            work.get_future().then(lambda done: done.value()).wait()
        else:
            future = work.get_future() if how == "with a future" else None
            work.wait()
            del future
        del x, work


@pytest.mark.parametrize("how", ["alone", "with a future", "then"])
def test_tensors_of_calls_that_are_over_are_the_ranks_own_to_free(how):
    run = launch(holds_one_tensor_at_a_time, 2, (how,), memory=True)
    assert max(run.peak_bytes) <= 3 * 100_000  # gloo's threads may keep one a moment longer


def holds_replicas(rank, world_size):
    model = torch.nn.Linear(500, 500)
    before = held_bytes()
    _replica = DistributedDataParallel(model)  # waits in C++ for what it broadcasts
    dist.barrier()
    return before, held_bytes()


def test_tensors_of_calls_that_ddp_waited_for_are_freed():
    for before, after in launch(holds_replicas, 2, memory=True).results:
        assert after == 2 * before  # the weights, and room for gradients


def waits_for_a_future_that_never_comes(rank, world_size):
    if rank == 0:
        dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()


def test_a_rank_that_waits_for_a_future_is_seen_to_wait():
    with pytest.raises(DeadlockError, match="rank 0 waits in all_reduce"):
        launch(waits_for_a_future_that_never_comes, 2)
