"""Intervals agree with Young, Daly and a simulated year; a changed bit, a nan, a slow rank and a
dead one are found or made good; TensorBoard's own reader reads what was written."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from byhand import launch
from byhand.fault_tolerance import (
    RATES,
    Disk,
    Monitor,
    Neighbour,
    PowerCut,
    best,
    between,
    daly,
    differing,
    fingerprint,
    goodput,
    not_finite,
    simulate,
    stragglers,
    waits,
    young,
)
from byhand.fault_tolerance.interval import HOUR
from byhand.fault_tolerance.monitor import busy, by_step
from byhand.fault_tolerance.waiting import meetings
from byhand.runtime.ledger import Event

# How often to save

LLAMA = between(16384, RATES["Llama 3 405B"])


def test_published_rates_are_hours_between_failures():
    assert LLAMA / HOUR == pytest.approx(3.093, abs=1e-3)
    for num_gpus, hours in ((16384, 1.8), (131072, 0.23)):  # as arXiv:2410.21680 projects them
        projected = between(num_gpus, RATES["Meta RSC-1"]) / HOUR
        assert projected == pytest.approx(hours, rel=0.03)


seconds = st.floats(1, 3000)


@given(seconds, seconds, st.floats(3000, 1e6))
def test_no_interval_is_better_than_the_best(save, restart, mean):
    interval = best(save, mean)
    most = goodput(interval, save, restart, mean)
    assert all(goodput(interval * f, save, restart, mean) < most for f in (0.8, 0.97, 1.03, 1.25))


@given(seconds, st.floats(3e4, 1e7))
def test_daly_is_near_the_best_and_young_where_a_save_is_short(save, mean):
    assert daly(save, mean) == pytest.approx(best(save, mean), rel=0.01)
    assert young(save, mean) == pytest.approx(best(save, mean), rel=1.1 * math.sqrt(save / mean))


@pytest.mark.parametrize("save", [0.0, 1e-9, 1e-6])
def test_the_best_interval_of_a_save_that_takes_next_to_no_time_is_youngs(save):
    assert best(save, 1e7) == pytest.approx(young(save, 1e7), rel=1e-6, abs=1e-6)


def test_daly_gives_up_where_a_save_takes_twice_the_time_between_failures():
    assert daly(20.0, 10.0) == daly(50.0, 10.0) == 10.0


@pytest.mark.parametrize("save", [5.0, 60.0, 1800.0])
@pytest.mark.parametrize("factor", [0.3, 1, 3])
def test_a_simulated_decade_has_the_expected_goodput(save, factor):
    interval = factor * best(save, LLAMA)
    times = simulate(interval, save, 600.0, LLAMA, seconds=10 * 365 * 24 * HOUR, seed=1)
    assert times.goodput == pytest.approx(goodput(interval, save, 600.0, LLAMA), rel=0.02)
    assert sum(times[:4]) == pytest.approx(10 * 365 * 24 * HOUR)
    assert times.failures == pytest.approx(10 * 419 / 54 * 365, rel=0.03)
    assert times == simulate(interval, save, 600.0, LLAMA, seconds=10 * 365 * 24 * HOUR, seed=1)


def test_a_run_without_failures_only_works_and_saves():
    times = simulate(90.0, 10.0, 600.0, 1e30, seconds=1050.0)
    assert times == (950.0, 100.0, 0.0, 0.0, 0)
    assert goodput(90.0, 10.0, 600.0, 1e30) == pytest.approx(0.9)
    assert goodput(1e9, 10.0, 600.0, 10.0) == 0


# Wrong without dying

TENSORS = [torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), torch.arange(5)]


@given(st.integers(0, 3 * 4 * 32 + 5 * 64 - 1))
def test_any_one_changed_bit_changes_the_fingerprint(bit):
    tensors = [tensor.clone() for tensor in TENSORS]
    index, place = (0, bit) if bit < 384 else (1, bit - 384)
    numbers = tensors[index].view(-1).view(torch.uint8)
    numbers[place // 8] ^= 1 << place % 8
    assert fingerprint(tensors) != fingerprint(TENSORS)


def test_a_fingerprint_depends_on_order_shape_and_dtype_and_not_on_strides():
    first, second = TENSORS
    others = [[second, first], [first.t(), second], [first.view(4, 3), second], [first, second + 0]]
    assert [fingerprint(one) == fingerprint(TENSORS) for one in others] == [False] * 3 + [True]
    assert fingerprint([first.t().contiguous().t(), second]) == fingerprint(TENSORS)
    assert fingerprint([second.int()]) != fingerprint([second])
    assert fingerprint([torch.ones(2, 3)[:1, 1]]) == fingerprint([torch.ones(1)])
    for dtype in (torch.bfloat16, torch.bool, torch.complex64):
        assert fingerprint([torch.ones((), dtype=dtype)])


@pytest.mark.parametrize(("n", "flipped", "found"), [(4, [2], [2]), (3, [], []), (5, [0, 4], None)])
def test_the_ranks_that_differ_from_the_majority_are_named_for_eight_bytes_a_rank(
    n, flipped, found
):
    def runs(rank: int, n: int) -> list[int]:
        tensors = [tensor.clone() for tensor in TENSORS]
        if rank in flipped:
            tensors[1][2] ^= 1 << rank
        return differing(tensors)

    run = launch(runs, n)
    assert run.results == [flipped if found is None else found] * n
    assert run.ledger.count() == run.ledger.count("all_gather") == n
    assert {event.sent_bytes for event in run.ledger.events} == {8 * (n - 1)}


def test_without_a_majority_all_are_suspects_and_a_group_names_its_own_ranks():
    def runs(rank: int, n: int) -> list[int]:
        pairs = [dist.new_group([2 * i, 2 * i + 1]) for i in range(2)]
        triple = dist.new_group([1, 2, 3])
        wrong = [torch.tensor([1.0 + (rank == 3)])]
        return [differing(wrong, pairs[rank // 2]), differing(wrong, triple) if rank else None]

    assert launch(runs, 4).results == [[[], None], [[], [2]], [[0, 1], [2]], [[0, 1], [2]]]


def test_who_has_a_nan_is_known_before_the_sum_and_nobody_after():
    def runs(rank: int, n: int) -> tuple[dict, dict]:
        gradients = [torch.ones(4), torch.arange(3)]
        if rank == 1:
            gradients[0][:2] = torch.tensor([math.nan, math.inf])
        before = not_finite(gradients)
        dist.all_reduce(gradients[0])
        return before, not_finite(gradients)

    assert launch(runs, 3).results == [({1: 2}, {0: 2, 1: 2, 2: 2})] * 3


# Who waits for whom


def call(rank, start, end, group=(0, 1), op="all_reduce", peer=None, wait=None):
    wait = start if wait is None else wait
    given = {"op": op, "group": group, "peer": peer, "payload_bytes": 8, "group_name": str(group)}
    return Event(rank=rank, start=start, wait_start=wait, wait_end=end, **given)


def test_the_last_one_to_come_made_the_others_wait():
    everyone = (0, 1, 2)
    events = [call(rank, start, 9.5, everyone) for rank, start in enumerate((1.0, 9.0, 3.0))]
    assert waits(events) == {(0, 1): 8.0, (2, 1): 6.0}
    assert stragglers(events) == {1: 8.0, 2: -6.0, 0: -8.0}  # one collective, one wait


def test_who_is_late_because_it_waited_itself_is_no_straggler():
    first = [call(0, 1, 5.1), call(1, 5, 5.1)]  # rank 1 is slow, and rank 0 waits
    second = [call(0, 6, 6.1, (0, 2)), call(2, 2, 6.1, (0, 2))]  # rank 2 waits for rank 0
    assert waits(first + second) == {(0, 1): 4, (2, 0): 4}
    assert stragglers(first + second) == {1: 4, 0: 0, 2: -4}


def steps_of(num_steps, groups, slow, delay=1.0):
    """Ledger of steps in which a rank comes `delay` late, and all then meet in those groups."""
    clock, events = dict.fromkeys(sorted(set().union(*groups)), 0.0), []
    for _ in range(num_steps):
        clock[slow] += delay
        for group in groups:
            end = max(clock[rank] for rank in group)
            events += [call(rank, clock[rank], end, group) for rank in group]
            clock |= dict.fromkeys(group, end)
    return events


def test_an_innocent_rank_nets_zero_however_many_it_makes_wait():
    found = stragglers(steps_of(3, [(0, 1), (1, 2, 3, 4, 5)], slow=0))
    assert found == {0: 3, 1: 0, 2: -3, 3: -3, 4: -3, 5: -3}


@given(st.data(), st.integers(1, 4), st.integers(2, 5), st.booleans())
def test_in_any_grid_of_groups_the_slow_rank_alone_is_above_zero(data, tall, wide, columns_first):
    ranks = range(tall * wide)
    rows = [tuple(ranks[wide * row : wide * (row + 1)]) for row in range(tall)]
    columns = [tuple(ranks[column::wide]) for column in range(wide)]
    slow = data.draw(st.sampled_from(ranks))
    groups = [*columns, *rows] if columns_first else [*rows, *columns]
    found = stragglers(steps_of(2, groups, slow))
    assert [rank for rank, seconds in found.items() if seconds > 0] == [slow]


def test_a_call_that_was_waited_for_late_or_ended_early_cost_less():
    assert waits([call(0, 1, 9, wait=7), call(1, 8, 9)]) == {(0, 1): 1}
    assert waits([call(0, 1, 2, op="send", peer=1), call(1, 8, 9, op="recv", peer=0)]) == {
        (0, 1): 1
    }
    assert waits([call(0, 8, 9, op="send", peer=1), call(1, 1, 9, op="recv", peer=0)]) == {
        (1, 0): 7
    }


def test_calls_meet_in_their_order_on_each_group_and_what_lacks_a_rank_meets_nothing():
    sends = [call(0, t, t + 1, op="send", peer=1) for t in (0, 2)]
    receives = [call(1, t, t + 1, op="recv", peer=0) for t in (4, 6)]
    sums = [call(rank, t, t + 1) for t in (8, 10) for rank in (0, 1)]
    alone = call(0, 12, 13)
    met = meetings([*sends, *receives, *sums, alone])
    assert sorted(sorted(one.start for one in each) for each in met) == [
        [0, 4],
        [2, 6],
        [8, 8],
        [10, 10],
    ]


def test_a_planted_straggler_of_real_ranks_is_found_in_their_ledger():
    def runs(rank: int, n: int) -> None:
        import time

        groups = [dist.new_group(ranks) for ranks in ((0, 1), (2, 3), (0, 2), (1, 3))]
        rows, columns = groups[rank // 2], groups[2 + rank % 2]
        for _ in range(5):
            if rank == 3:
                time.sleep(0.05)
            dist.all_reduce(torch.ones(4), group=rows)
            dist.all_reduce(torch.ones(4), group=columns)

    found = stragglers(launch(runs, 4).ledger.events)
    assert next(iter(found)) == 3
    assert found[3] > 0.2


def test_a_receive_from_any_rank_waits_for_the_send_that_no_other_receive_takes():
    named = call(0, 2, 9, op="recv", peer=1)
    anyone = [call(0, t, 9, op="recv", peer=None) for t in (1, 3)]
    sends = [call(rank, t, 9, op="send", peer=0) for rank, t in ((1, 4), (2, 5), (3, 7))]
    assert waits([*anyone, named, *sends]) == {(0, 1): 2, (0, 2): 4, (0, 3): 4}


@pytest.mark.parametrize("source", [None, 0])
def test_a_slow_sender_of_real_ranks_is_found_by_who_receives_from_it_or_from_anyone(source):
    def runs(rank: int, n: int) -> None:
        import time

        for _ in range(2):
            if rank == 0:
                time.sleep(0.2)
                dist.send(torch.ones(4), 1)
            else:
                dist.recv(torch.ones(4), source)

    found = stragglers(launch(runs, 2).ledger.events)
    assert next(iter(found)) == 0
    assert found[0] > 0.2


# A neighbour's memory


@pytest.mark.parametrize(("n", "distance", "dead"), [(2, 1, [1]), (3, 1, [0]), (4, 2, [0, 1])])
def test_what_a_rank_lost_comes_back_from_its_neighbour_and_the_others_go_back(n, distance, dead):
    def runs(rank: int, n: int) -> tuple:
        columns = torch.arange(6.0).view(2, 3).t().add(10 * rank).requires_grad_()
        state = [torch.full((3,), 10.0 * rank), torch.tensor(7), columns.detach()]
        memory = Neighbour([*state[:2], columns], distance=distance)
        memory.keep()
        state[0] += 1  # training goes on
        state[1] += 1
        state[2].zero_()
        if rank in dead:
            state = [torch.zeros(3), torch.tensor(0), torch.zeros(2, 3).t()]
            memory = Neighbour(state, distance=distance)
        memory.give_back(dead)
        again = memory.count
        return state[0].tolist(), int(state[1]), again, state[2].t().flatten().tolist()

    run = launch(runs, n)
    for rank, found in enumerate(run.results):
        assert found == ([10.0 * rank] * 3, 7, 2, [10.0 * rank + i for i in range(6)])
    sent = 3 * 4 + 8 + 6 * 4
    assert run.ledger.sent_bytes("send") == (2 * n + len(dead)) * sent


def test_ranks_that_die_one_after_the_other_all_come_back():
    def runs(rank: int, n: int) -> float:
        state = [torch.tensor(float(rank + 1))]
        memory = Neighbour(iter(state))  # once, as nn.Module.parameters() can be walked
        memory.keep()
        for dead in (1, 0, 2, 1):
            if rank == dead:
                state = [torch.tensor(0.0)]
                memory = Neighbour(state)
            memory.give_back([dead])
        return float(state[0])

    assert launch(runs, 3).results == [1.0, 2.0, 3.0]


def test_two_neighbours_that_die_together_are_a_sentence_on_all():
    def runs(rank: int, n: int) -> list[str]:
        memory, said = Neighbour([torch.ones(2)]), []
        for dead in ([1, 2], [1]):
            memory.count = rank if dead == [1] else 1
            with pytest.raises(ValueError, match="load a checkpoint from the disk") as error:
                memory.give_back(dead)
            said.append(str(error.value))
        with pytest.raises(ValueError, match="3 ranks and a distance of 3: each would keep its"):
            Neighbour([torch.ones(2)], distance=3)
        return said

    first = launch(runs, 3).results[0]
    assert first[0].startswith("ranks 1 and 2 died, and rank 2 kept what rank 1 had")
    assert "kept their states [0, 2] times" in first[1]


RANK = """
import os, signal, sys, torch, torch.distributed as dist
from byhand.fault_tolerance import Neighbour

rank, folder = int(sys.argv[1]), sys.argv[2]
spare = rank == 3  # a hot spare: takes rank 1 in the second group


def join(name, rank):
    dist.init_process_group("gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=3)


state = [torch.zeros(2, dtype=torch.float64), torch.tensor(0)]
memory = None


def train(until, dies=False):
    while state[1] < until:
        if state[1] == 4 and dies:
            os.kill(os.getpid(), signal.SIGKILL)
        gradient = torch.full((2,), 1.0 + rank + float(state[1]), dtype=torch.float64)
        dist.all_reduce(gradient)
        state[0] += gradient * (1 + rank)  # every rank has a state of its own
        state[1] += 1
        if state[1] == 3:
            memory.keep()


if spare:
    rank = 1
    join("second", rank)
    memory = Neighbour(state)
else:
    join("first", rank)
    memory = Neighbour(state)
    try:
        train(until=6, dies=rank == 1)
    except RuntimeError:  # rank 1 is gone
        assert state[1] == 4, state
    dist.destroy_process_group()
    join("second", rank)
memory.give_back([1])
assert state[1] == 3, state
train(until=6)
print(rank, int(state[1]), float(state[0][0]))
dist.destroy_process_group()
"""


def test_a_rank_that_was_killed_goes_on_from_its_neighbours_memory(tmp_path):
    """A spare takes its place; all end where an uninterrupted run would, and no disk was read."""
    (tmp_path / "rank.py").write_text(RANK)
    command = [sys.executable, str(tmp_path / "rank.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    ranks = [subprocess.Popen([*command, str(r), str(tmp_path)], **pipes) for r in range(4)]
    try:
        said = [rank.communicate(timeout=300) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, -9, 0, 0], said
    total = sum(6 + 3 * step for step in range(6))  # of all gradients: 1+s + 2+s + 3+s
    ended = {tuple(map(float, out.split()[-3:])) for out, _ in said if out}
    assert ended == {(rank, 6, total * (1 + rank)) for rank in range(3)}


# A disk on which to try a save


def written(**given) -> Disk:
    disk = Disk(**given)
    disk.mkdir("a")
    disk.sync("")
    disk.write("a/x", b"1234")
    disk.sync("a/x")
    disk.sync("a")
    disk.write("a/x", b"5678")
    disk.rename("a/x", "a/y")
    return disk


def test_a_power_cut_leaves_what_was_synced_and_anything_of_the_rest():
    disk = written()
    assert (disk.names("a"), disk.read("a/y")) == (["y"], b"5678")
    cuts = [disk.after_cut(seed) for seed in range(30)]
    found = [(name, cut.read(f"a/{name}")) for cut in cuts for name in cut.names("a")]
    assert found[:2] == [("x", b"1234"), ("y", b"5678")]
    assert set(found) == {(name, data) for name in "xy" for data in (b"1234", b"56", b"5678")}
    disk.sync("a")
    disk.sync("a/y")
    assert {disk.after_cut(seed).read("a/y") for seed in range(30)} == {b"5678"}


def test_the_power_goes_instead_of_a_change_and_stays_off():
    written(changes=7)
    for changes in range(7):
        with pytest.raises(PowerCut):
            written(changes=changes)
    disk = Disk(changes=0)
    for change in (lambda: disk.mkdir("a"), lambda: disk.write("x", b""), lambda: disk.sync("")):
        with pytest.raises(PowerCut):
            change()
    assert disk.names("") == []


def test_a_disk_refuses_as_a_real_one_does():
    disk = written(room=5)
    refused = {
        FileExistsError: [lambda: disk.mkdir("a"), lambda: disk.rename("b", "a")],
        FileNotFoundError: [lambda: disk.read("a/x"), lambda: disk.write("c/x", b"")],
        IsADirectoryError: [lambda: disk.read("a"), lambda: disk.write("a", b"")],
        NotADirectoryError: [lambda: disk.names("a/y"), lambda: disk.mkdir("a/y/z")],
        OSError: [lambda: disk.write("z", b"12")],
    }
    disk.mkdir("b")
    for error, calls in refused.items():
        for call_it in calls:
            with pytest.raises(error):
                call_it()
    assert disk.read("z") == b""
    disk.remove("a")
    disk.write("z", b"12345")
    disk.write("b/w", b"")
    disk.rename("b/w", "z")
    assert (disk.names(""), disk.read("z")) == (["b", "z"], b"")
    assert not disk.exists("a/y")


# Monitoring


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """As TensorBoard reads it."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {
        name: [(one.step, one.value) for one in found.Scalars(name)]
        for name in found.Tags()["scalars"]
    }


def test_tensorboard_reads_what_a_run_wrote(tmp_path):
    def runs(rank: int, n: int) -> list[dict[str, float]]:
        steps = []
        for step in range(3):
            dist.all_reduce(torch.ones(1000 * (step + 1)))
            dist.barrier()
            steps.append({"loss": 4.0 - step, "gradient_norm": 0.5, "tokens_a_second": 1e4})
        return steps

    run = launch(runs, 2, memory=True)
    with Monitor(tmp_path) as monitor:
        for step, numbers in enumerate(run.results[0]):
            monitor.step(step, **numbers)
        monitor.communication(run.ledger.events)
        monitor.memory(run.peak_bytes)
    found = read(tmp_path)
    assert found["loss"] == [(0, 4.0), (1, 3.0), (2, 2.0)]
    assert {"gradient norm", "tokens a second", "bytes a second/rank 1"} < set(found)
    assert found["sent bytes/rank 0"] == [(0, 4000), (1, 8000), (2, 12000)]
    assert found["peak bytes/rank 1"] == [(0, run.peak_bytes[1])]
    assert all(value > 0 for _, value in found["bytes a second/rank 0"])
    assert all(value >= 0 for _, value in found["seconds waited/rank 1"])


def test_a_ranks_step_ends_with_its_own_call_and_what_is_under_way_twice_counts_once():
    ends = [call(0, 4, 5, op="barrier"), call(1, 2, 5, op="barrier")]
    events = [call(0, 1, 3), call(1, 1, 2), *ends, call(1, 6, 7)]
    (only,) = by_step(events)
    assert sorted((one.rank, one.start) for one in only) == [(0, 1), (0, 4), (1, 1), (1, 2)]
    assert busy([call(0, 1, 3), call(0, 2, 5), call(0, 2, 4), call(0, 7, 8)]) == 5


def test_without_tensorboard_a_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match="this needs tensorboard: pip install tensorboard"):
        Monitor(tmp_path)
