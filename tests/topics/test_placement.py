"""Which groups stay on a host, and the bytes that do not: by hand, by loops, and as properties."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand import VirtualNetwork, launch
from byhand.costs import Layout, gpt
from byhand.costs.counting import sent
from byhand.rank_groups import RankGrid, rank_groups
from byhand.rank_groups.lab import counted_leaving, group_lines, leaves, timed_steps
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.rank_groups.traffic import (
    between_hosts,
    busiest_host,
    bytes_leaving,
    orders,
    stays_inside,
    transformer_bytes,
)

SENT = {"tp": 100.0, "dp": 10.0, "pp": 1.0}
powers = st.sampled_from([1, 2, 4])


def leaving_by_loops(grid, ranks_per_host, name, num_bytes):
    """The same one message at a time."""
    leaving = [0.0] * (grid.world_size // ranks_per_host)
    for group in grid.groups(name).tolist():
        n = len(group)
        for i, sender in enumerate(group):
            if name == "pp":
                receivers = [group[j] for j in (i - 1, i + 1) if 0 <= j < n]
                each = num_bytes
            elif name == "ep":
                receivers = [rank for rank in group if rank != sender]
                each = num_bytes / max(1, n - 1)
            else:
                receivers, each = [group[(i + 1) % n]], num_bytes
            for receiver in receivers:
                if sender // ranks_per_host != receiver // ranks_per_host:
                    leaving[sender // ranks_per_host] += each
    return leaving


def test_with_tp_innermost_only_data_and_pipeline_parallel_leave_a_host():
    grid = RankGrid(16, tp=4, pp=2)
    inside = {name: stays_inside(grid.groups(name), 4).all() for name in ("tp", "dp", "pp")}
    assert inside == {"tp": True, "dp": False, "pp": False}
    leaving = bytes_leaving(grid, 4, SENT)
    assert {name: list(found) for name, found in leaving.items()} == {
        "tp": [0, 0, 0, 0],
        "dp": [40, 40, 40, 40],  # four rings, each leaves the host once
        "pp": [4, 4, 4, 4],  # forward from two hosts, backward from the two others
    }


def test_with_tp_outermost_everything_it_sends_leaves():
    grid = RankGrid(16, tp=4, pp=2, order="dp-pp-tp")
    assert list(bytes_leaving(grid, 4, SENT)["tp"]) == [400, 400, 400, 400]
    assert not stays_inside(grid.groups("tp"), 4).any()
    assert stays_inside(grid.groups("dp"), 4).all()


@given(powers, powers, powers, powers, st.sampled_from(["tp-ep-dp-pp", "dp-ep-tp-pp"]), powers)
@settings(max_examples=80)
def test_bytes_are_those_of_the_messages_one_by_one(tp, ep, pp, dp, order, ranks_per_host):
    grid = RankGrid(tp * ep * pp * dp, tp=tp, ep=ep, pp=pp, order=order)
    if grid.world_size % ranks_per_host:
        return
    sent = {"tp": 7.0, "dp": 5.0, "pp": 3.0, "ep": 12.0, "tp-dp": 2.0}
    for name, found in bytes_leaving(grid, ranks_per_host, sent).items():
        assert list(found) == pytest.approx(
            leaving_by_loops(grid, ranks_per_host, name, sent[name])
        )


def test_one_host_sends_nothing_to_others():
    assert busiest_host(RankGrid(16, tp=4, pp=2), 16, SENT) == 0


def test_the_least_leaves_where_tp_comes_first():
    grid = RankGrid(16, tp=4, pp=2)
    leaving = {other.order: busiest_host(other, 4, SENT) for other in orders(grid)}
    assert len(leaving) == 6
    best = min(leaving.values())
    assert {order[:2] for order, found in leaving.items() if found == best} == {"tp"}
    assert max(leaving.values()) > 9 * best


def test_orders_that_are_refused_are_left_out():
    assert all(grid.order.split("-")[2] == "pp" for grid in orders(RankGrid(16, cp=2, pp=2)))


def test_what_a_transformer_sends_is_the_papers():
    grid = RankGrid(64, tp=8, pp=4)
    sent = transformer_bytes(grid, 8, hidden=10, sequence=6, micro_batch=2, num_micro_batches=5)
    assert sent == {
        "tp": pytest.approx(5 * 2 * 8 * (2 * 6 * 10) * 7 / 8 * 2),  # 8bsh(t-1)/t, two layers
        "cp": 0,
        "dp-cp": pytest.approx(2 * (1 / 2) * (2 * 12 * 10 * 10 / 8) * 2),
        "pp": 5 * 2 * 6 * 10 * 2,
    }


def test_tp_ranks_that_share_out_a_message_send_a_share_and_gather_the_rest():
    grid, shape = RankGrid(64, tp=8, pp=4), {"hidden": 10, "sequence": 6, "micro_batch": 2}
    whole, shared = (
        transformer_bytes(grid, 8, **shape, num_micro_batches=5, scatter_gather=shares)
        for shares in (False, True)
    )
    assert shared["pp"] == whole["pp"] / 8
    assert shared["tp"] - whole["tp"] == pytest.approx(2 * 7 / 8 * whole["pp"])  # there and back


def test_ranks_must_fill_their_hosts():
    with pytest.raises(ValueError, match="16 ranks do not fill hosts of 6"):
        bytes_leaving(RankGrid(16), 6, SENT)


def reduce_along(rank, world_size, order, sizes):
    groups = groups_for_this_rank(rank_groups(world_size, tp=2, order=order), list(sizes))
    for name, num_elements in sizes.items():
        dist.all_reduce(torch.ones(num_elements), group=groups[name])


SIZES = {"tp": 1000, "dp": 100}  # float32 elements that each group all-reduces
FLOATS = {name: 4.0 * n for name, n in SIZES.items()}  # two ranks: each sends 2·(2-1)/2 of them


@pytest.mark.parametrize("order", ["tp-dp", "dp-tp"])
def test_a_run_sends_what_was_predicted(order):
    run = launch(reduce_along, 4, (order, SIZES))
    grid = RankGrid(4, tp=2, order=order)
    predicted = bytes_leaving(grid, 2, FLOATS)
    for host in (0, 1):
        counted = counted_leaving(run, grid, 2, list(SIZES), host)
        assert counted == {name: found[host] for name, found in predicted.items()}


@pytest.mark.network
def test_the_kernel_counts_what_was_predicted():
    sizes = {"tp": 100_000, "dp": 20_000}
    network = VirtualNetwork(hosts=2, ranks_per_host=2, bytes_per_second=100e6)
    run = launch(reduce_along, 4, ("dp-tp", sizes), network=network)
    sent = {name: 4.0 * n for name, n in sizes.items()}
    predicted = sum(bytes_leaving(RankGrid(4, tp=2, order="dp-tp"), 2, sent).values())
    for host, num_bytes in zip(run.traffic.hosts, predicted, strict=True):
        assert 1 <= host.sent / num_bytes < 1.05  # headers, acknowledgements, greetings


LAYOUTS = [
    Layout(dp=4, pp=2),
    Layout(dp=2, tp=2, pp=2, order="tp-cp-ep-pp-dp"),
    Layout(tp=2, cp=4, zero=3),
    Layout(dp=2, pp=4, chunks=2, order="pp-tp-cp-ep-dp"),
    Layout(pp=8),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_all_of_a_step_leaves_hosts_of_one_rank_and_nothing_the_only_host(layout):
    model = gpt(16, 64, 8, 32, 128)
    everything = 0.0
    for stage in range(layout.pp):
        ops = sent(model, layout, 8, stage).values()
        everything += layout.num_ranks / layout.pp * sum(sum(each.values()) for each in ops)
    assert between_hosts(model, layout, 8, 1) == pytest.approx(everything)
    assert between_hosts(model, layout, 8, 8) == 0
    assert 0 < between_hosts(model, layout, 8, 2) < everything


def call_everything(rank, world_size):
    """One call of each kind, all of them of 800 bytes or so."""
    x, parts = torch.ones(100, dtype=torch.float64), [torch.ones(25, dtype=torch.float64)] * 4
    dist.all_reduce(x)
    dist.broadcast(x, 1)
    dist.reduce(x, 2)
    dist.all_gather([torch.empty_like(parts[0]) for _ in parts], parts[0])
    dist.scatter(torch.empty_like(parts[0]), parts if rank == 0 else None, 0)
    dist.gather(parts[0], [torch.empty_like(p) for p in parts] if rank == 3 else None, 3)
    dist.all_to_all_single(torch.empty_like(x), x)
    if rank in (0, 3):
        dist.send(x, 1) if rank == 0 else dist.send(x, 2)
    else:
        dist.recv(x, 0 if rank == 1 else 3)
    dist.barrier()


def test_the_ledger_knows_which_bytes_leave_a_host():
    ledger = launch(call_everything, 4).ledger
    by_op = {op: 0.0 for op in ("all_reduce", "broadcast", "reduce", "all_gather", "scatter")}
    by_op |= {"gather": 0.0, "all_to_all": 0.0, "send": 0.0, "recv": 0.0, "barrier": 0.0}
    for event in ledger.events:
        by_op[event.op] += event.bytes_to_other_hosts(2)
    assert by_op == {
        "all_reduce": 2 * 1200,  # ranks 1 and 3 send to another host
        "broadcast": 2 * 800,  # the chain 1, 2, 3, 0
        "reduce": 2 * 800,  # the chain 3, 0, 1, 2
        "all_gather": 2 * 600,
        "scatter": 2 * 200,
        "gather": 2 * 200,
        "all_to_all": 4 * 2 * 200,
        "send": 0,
        "recv": 0,
        "barrier": 0,
    }
    assert ledger.bytes_between_hosts(2) == sum(by_op.values())
    assert ledger.bytes_between_hosts(1) == ledger.sent_bytes()


@pytest.mark.parametrize(("order", "crossing"), [("tp-dp-pp", "pp"), ("pp-dp-tp", "tp")])
def test_on_two_hosts_the_last_of_three_axes_crosses_and_its_lines_say_so(order, crossing):
    grid = RankGrid(8, tp=2, pp=2, order=order)
    assert [axis for axis in ("tp", "dp", "pp") if leaves(grid, axis, 4)] == [crossing]
    figure = group_lines({order: grid}, 4, "a title")
    told = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert f"{crossing}: 4 of 4 leave a host" in told
    assert "dp: none leaves a host" in told


def test_a_step_of_lecture_11_sends_what_its_table_says():
    degrees = {"tp": 2, "pp": 2}
    run = launch(timed_steps, 8, ("tp-dp-pp", degrees, 1))
    assert {run.ledger.sent_bytes(rank=rank) for rank in range(8)} == {5_500_000}
    sent = {"tp": 4e6, "dp": 1e6, "pp": 0.5e6}
    leaving = bytes_leaving(RankGrid(8, order="tp-dp-pp", **degrees), 4, sent)
    assert run.ledger.bytes_between_hosts(4) == sum(map(sum, leaving.values())) == 4_000_000
