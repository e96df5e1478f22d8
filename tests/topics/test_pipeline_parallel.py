"""The pipeline's worker: every schedule equals the unsplit model, holds what it must, never hangs.

Ranks share two cores, so nothing here is compared with a clock except where chunks sleep.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from functools import partial

import pytest
import torch
import torch.distributed as dist
from cases import parted
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand import RankError, launch
from byhand.model.mlp import GELU, MLP, mean_squared_error, random_weights, softmax_cross_entropy
from byhand.model.optimizers import AdamW
from byhand.pipeline_parallel import Pipeline, Stage, Step, cut, partition, timeline
from byhand.pipeline_parallel.lab import Sleep, sleep_through
from byhand.pipeline_parallel.messages import Wire
from byhand.pipeline_schedules import (
    Route,
    breadth_first,
    dual_pipe_v,
    find,
    gpipe,
    interleaved,
    one_forward_one_backward,
    simulate,
    there_and_back,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)
from byhand.pipeline_schedules.actions import ScheduleError, incoming, makes, receiver, route_of
from byhand.tools import asleep

SIZES = [6, *[9] * 7, 5]  # 8 linear layers and 7 activations, as wide wherever one may cut
SPLIT = {
    "gpipe": (gpipe, 1),
    "1f1b": (one_forward_one_backward, 1),
    "zero bubble": (zero_bubble_h1, 1),
    "zero bubble H2": (zero_bubble_h2, 1),
    "interleaved 2": (partial(interleaved, num_chunks=2), 2),
    "interleaved 3": (partial(interleaved, num_chunks=3), 3),
    "breadth first": (partial(breadth_first, num_chunks=2), 2),
    "zero bubble V": (zero_bubble_v, 2),
    "DualPipe V": (dual_pipe_v, 2),
    "found on a V": (lambda p, m: find(there_and_back(p), m, p + 1, width=1), 2),
    "down, up, down": (lambda p, m: find([*range(p), *range(p)[::-1], *range(p)], m, 3), 3),
}


def cases(world_size, counts):
    """The schedules of these numbers of micro-batches, as far as they fit."""
    for (make, _), m in itertools.product(SPLIT.values(), counts):
        with contextlib.suppress(ScheduleError):
            yield make(world_size, m)


def chunks_of(weights, rank, schedule, activation=GELU):
    layers, route = MLP.from_weights(weights, activation).layers, route_of(schedule)
    parts = partition(len(layers), len(route))
    return [MLP([layers[i] for i in parts[place]]) for place in route.places(rank)]


def boundary(weights):
    """The shape and dtype of a row between two stages."""
    bias = weights[0][1]
    return bias.shape, bias.dtype


def one_step(rank, world_size, weights, x, targets, schedule, loss, activation=GELU):
    chunks = chunks_of(weights, rank, schedule, activation)
    pipeline = Pipeline(chunks, schedule, *boundary(weights))
    m = pipeline.num_micro_batches
    step = pipeline.step(cut(x, m), cut(targets, m), loss)
    return step, [chunk.gradients() for chunk in chunks]


def many_steps(rank, world_size, weights, x, targets, some, loss):
    """A step of each schedule; each begins with a barrier."""
    steps = []
    for schedule in some:
        dist.barrier()
        steps.append(one_step(rank, world_size, weights, x, targets, schedule, loss))
    return steps


def unsplit(weights, x, targets, loss, activation=GELU):
    """The loss and every gradient of the one-device model."""
    model = MLP.from_weights(weights, activation)
    y, saved = model.forward(x)
    value, grad_y = loss(y, targets)
    model.backward(grad_y, saved)
    return value, model.gradients()


def in_order(per_rank, route):
    """Lists by rank and chunk as one list, first layer first."""
    by_place = sorted((place, chunk) for chunk, place in route.place.items())
    return [t for _, (rank, chunk) in by_place for t in per_rank[rank][chunk]]


def assert_close(mine, theirs, tolerance=1e-10):
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def assert_unsplit(results, expected, schedule=None, tolerance=1e-10):
    """Every rank's (step, gradients) are those of the unsplit model; a line, if no schedule."""
    loss, gradients = expected
    steps, mine = zip(*results, strict=True)
    route = route_of(schedule) if schedule else Route(range(len(steps)))
    assert [r for r, step in enumerate(steps) if step.loss is not None] == [route[-1]]
    got = [steps[route[-1]].loss, *in_order(mine, route)]
    assert_close(got, [loss, *gradients], tolerance)


def digits_like(sizes, num_rows, dtype=torch.float64):
    generator = torch.Generator().manual_seed(len(sizes) * num_rows)
    x = torch.randn(num_rows, sizes[0], generator=generator, dtype=dtype)
    labels = torch.randint(sizes[-1], (num_rows,), generator=generator)
    return random_weights(sizes, seed=2, dtype=dtype), x, labels


# Equal to the unsplit model


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_every_schedule_gives_the_unsplit_models_loss_and_gradients(world_size):
    weights, x, labels = digits_like(SIZES, 13)
    some = list(cases(world_size, (1, 2, 3, 4, 8)))
    assert len(some) > 40
    run = launch(
        many_steps, world_size, (weights, x, labels, some, softmax_cross_entropy), deadline=110
    )
    expected = unsplit(weights, x, labels, softmax_cross_entropy)
    for number, schedule in enumerate(some):
        assert_unsplit([result[number] for result in run.results], expected, schedule)


@given(
    st.integers(1, 4),
    st.tuples(*[st.integers(1, 7)] * 3, st.integers(3, 5)),
    st.integers(1, 9),
    st.sampled_from([gpipe, one_forward_one_backward, zero_bubble_h1, zero_bubble_h2]),
    st.data(),
)
@settings(max_examples=5)
def test_any_widths_and_any_number_of_micro_batches(world_size, widths, num_rows, make, data):
    m = data.draw(st.integers(1, num_rows))
    first, hidden, last, depth = widths
    sizes = [first, *[hidden] * depth, last]
    weights, x, _ = digits_like(sizes, num_rows)
    target = torch.randn(num_rows, sizes[-1], dtype=torch.float64)
    args = (weights, x, target, make(world_size, m), mean_squared_error)
    run = launch(one_step, world_size, args)
    assert_unsplit(run.results, unsplit(weights, x, target, mean_squared_error))


def one_stage(rank, world_size, weights, x, labels, m, schedule):
    """One step of a Stage, in a schedule's order, as lecture 09 interprets it."""
    layers = chunks_of(weights, rank, schedule)[0]
    shape = (len(x) // m, weights[0][0].shape[0])
    stage = Stage(layers, cut(x, m), cut(labels, m), softmax_cross_entropy, shape)
    for action in schedule[rank]:
        getattr(stage, action.kind)(action.micro_batch)
    assert not stage.saved
    return Step(stage.finish(), stage.spans), [layers.gradients()]


@pytest.mark.parametrize("make", [gpipe, one_forward_one_backward])
@pytest.mark.parametrize(("world_size", "m"), [(1, 4), (2, 3), (4, 6)])
def test_a_stage_told_its_shape_gives_the_unsplit_models_loss_and_gradients(make, world_size, m):
    weights, x, labels = digits_like([8] * 6, 2 * m)
    schedule = make(world_size, m)
    run = launch(one_stage, world_size, (weights, x, labels, m, schedule))
    assert_unsplit(run.results, unsplit(weights, x, labels, softmax_cross_entropy))
    assert run.ledger.sent_bytes() == 2 * (world_size - 1) * len(x) * 8 * 8
    got = timeline(step for step, _ in run.results)
    assert got.peak_in_flight == simulate(schedule).peak_in_flight


def test_a_stage_sends_what_its_layers_make_however_that_lies_in_memory():
    weights, _, labels = digits_like([3, 3], 4)
    x = torch.randn(3, 4, dtype=torch.float64).T  # and a GELU of it lies by column, too

    def step(rank, world_size):
        layers = MLP.from_weights(weights) if rank else GELU()
        stage = Stage(layers, [x], [labels], softmax_cross_entropy, (4, 3))
        stage.forward(0)
        stage.backward(0)
        return stage.finish()

    loss, _ = softmax_cross_entropy(
        MLP.from_weights(weights).forward(GELU().forward(x)[0])[0], labels
    )
    torch.testing.assert_close(launch(step, 2).results[1], loss)


def train(rank, world_size, weights, x, labels, schedule):
    chunks = chunks_of(weights, rank, schedule)
    pipeline = Pipeline(chunks, schedule, *boundary(weights))
    m = pipeline.num_micro_batches
    parameters = [tensor for chunk in chunks for tensor in chunk.parameters()]
    optimizer = AdamW(parameters, lr=0.01)
    for _ in range(3):
        for chunk in chunks:
            chunk.zero_gradients()
        pipeline.step(cut(x, m), cut(labels, m), softmax_cross_entropy)
        optimizer.step([tensor for chunk in chunks for tensor in chunk.gradients()])
    return [chunk.parameters() for chunk in chunks]


def train_on_each(rank, world_size, weights, x, labels, some):
    return [train(rank, world_size, weights, x, labels, schedule) for schedule in some]


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_weights_after_three_adamw_steps_are_the_unsplit_models(world_size):
    weights, x, labels = digits_like(SIZES, 10)
    some = list(cases(world_size, (6 if world_size == 3 else 4,)))
    run = launch(train_on_each, world_size, (weights, x, labels, some), deadline=110)
    model = MLP.from_weights(weights, GELU)
    optimizer = AdamW(model.parameters(), lr=0.01)
    for _ in range(3):
        model.zero_gradients()
        y, saved = model.forward(x)
        model.backward(softmax_cross_entropy(y, labels)[1], saved)
        optimizer.step(model.gradients())
    for number, schedule in enumerate(some):
        got = in_order([result[number] for result in run.results], route_of(schedule))
        assert_close(got, model.parameters())


def uneven_steps(rank, world_size, weights, x, labels, schedule, some):
    """Two steps of one pipeline, on so many rows each."""
    chunks = chunks_of(weights, rank, schedule)
    pipeline, found = Pipeline(chunks, schedule, *boundary(weights)), []
    for rows in some:
        for chunk in chunks:
            chunk.zero_gradients()
        step = pipeline.step(cut(x[:rows], 4), cut(labels[:rows], 4), softmax_cross_entropy)
        found.append((step, [[g.clone() for g in chunk.gradients()] for chunk in chunks]))
    return found


def test_an_epochs_last_batch_may_be_smaller():
    weights, x, labels = digits_like(SIZES, 13)
    schedule, some = interleaved(2, 4, 2), (13, 6)
    run = launch(uneven_steps, 2, (weights, x, labels, schedule, some))
    for number, rows in enumerate(some):
        expected = unsplit(weights, x[:rows], labels[:rows], softmax_cross_entropy)
        assert_unsplit([result[number] for result in run.results], expected, schedule)


def in_a_group(rank, world_size, weights, x, labels, schedule):
    group, reverse_group = (dist.new_group([1, 2]) for _ in range(2))
    if rank == 0:
        return None
    chunks = chunks_of(weights, rank - 1, schedule)
    pipeline = Pipeline(chunks, schedule, *boundary(weights), group, reverse_group)
    step = pipeline.step(cut(x, 4), cut(labels, 4), softmax_cross_entropy)
    return step, [chunk.gradients() for chunk in chunks]


@pytest.mark.parametrize("schedule", [interleaved(2, 4, 2), zero_bubble_v(2, 4)], ids=["loop", "V"])
def test_stages_may_be_some_of_the_ranks_and_have_a_group_for_each_direction(schedule):
    weights, x, labels = digits_like(SIZES, 13)
    run = launch(in_a_group, 3, (weights, x, labels, schedule))
    assert_unsplit(run.results[1:], unsplit(weights, x, labels, softmax_cross_entropy), schedule)


def with_torch(rank, world_size, weights, x, labels, name, m):
    from torch.distributed import pipelining
    from torch.nn import functional as F

    layers = []
    for weight, bias in weights:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
        layers += [torch.nn.GELU(), linear] if layers else [linear]
    mine = [layers[i] for i in partition(len(layers), world_size)[rank]]
    stage = pipelining.PipelineStage(torch.nn.Sequential(*mine), rank, world_size, x.device)
    schedule = getattr(pipelining, name)(stage, m, loss_fn=F.cross_entropy)
    first, last = rank == 0, rank == world_size - 1
    losses = []
    schedule.step(*([x] if first else []), **({"target": labels, "losses": losses} if last else {}))
    gradients = [p.grad for p in stage.submod.parameters()]
    return (torch.stack(losses).mean() if last else None), gradients


@pytest.mark.parametrize(
    ("name", "make"), [("ScheduleGPipe", gpipe), ("Schedule1F1B", SPLIT["1f1b"][0])]
)
def test_torchs_own_pipelining_gives_the_same(name, make):
    weights, x, labels = digits_like(SIZES, 8, torch.float32)
    theirs = launch(with_torch, 2, (weights, x, labels, name, 4), deadline=110)
    run = launch(one_step, 2, (weights, x, labels, make(2, 4), softmax_cross_entropy))
    assert_close([run.results[-1][0].loss], [theirs.results[-1][0]], 1e-6)
    for (_, gradients), (_, expected) in zip(run.results, theirs.results, strict=True):
        assert_close(gradients[0], expected, 1e-6)


# What is sent


def test_each_boundary_carries_each_micro_batch_once_each_way():
    width, num_rows, m, p = 4, 7, 6, 3
    schedules = {name: make(p, m) for name, (make, _) in SPLIT.items()}
    weights, x, labels = digits_like([width] * 10, num_rows)
    arguments = weights, x, labels, list(schedules.values()), softmax_cross_entropy
    steps = parted(launch(many_steps, p, arguments))[1:]
    for (name, schedule), step in zip(schedules.items(), steps, strict=True):
        boundaries = sum(a != b for a, b in itertools.pairwise(route_of(schedule)))
        assert step.count("send") == step.count("recv") == 2 * boundaries * m, name
        assert step.count() == 4 * boundaries * m, name
        assert step.sent_bytes() == 2 * boundaries * 8 * width * num_rows, name


def connect_each(rank, world_size, some):
    """What a Pipeline does on NCCL; each begins with a barrier."""
    for schedule in some:
        dist.barrier()
        Wire(None, None, torch.device("cpu")).connect(route_of(schedule))


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_stages_meet_once_in_both_directions_at_each_boundary(world_size):
    some = list(cases(world_size, (8,)))
    parts = parted(launch(connect_each, world_size, (some,)))[1:]
    for schedule, ledger in zip(some, parts, strict=True):
        down = [pair for pair in itertools.pairwise(route_of(schedule)) if pair[0] != pair[1]]
        met = [(event.rank, event.peer) for event in ledger.events if event.op == "send"]
        assert sorted(met) == sorted(down + [pair[::-1] for pair in down])


@given(st.integers(1, 5), st.integers(2, 4), st.sampled_from([*SPLIT]))
def test_what_one_stage_sends_another_needs(p, groups, name):
    schedule, m = SPLIT[name][0](p, groups * p), groups * p
    route = route_of(schedule)
    actions = [(a, stage, route) for stage, some in enumerate(schedule) for a in some]
    made = {makes(*action) for action in actions} - {None}
    sent = {product for product in made if receiver(product, route) is not None}
    needed = {incoming(*action) for action in actions} - {None}
    assert sent == needed
    assert len(sent) == 2 * m * (len(route) - 1)


# When, and how much is held


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved 2", "zero bubble V", "DualPipe V"])
def test_a_run_does_and_holds_what_its_schedule_says(name):
    schedule = SPLIT[name][0](3, 6)
    got = sleep_through(schedule, *[0.001] * 3)
    assert got.peak_in_flight == simulate(schedule).peak_in_flight
    for stage, actions in enumerate(schedule):
        ran = sorted((s for s in got.spans if s.stage == stage), key=lambda span: span.start)
        assert [span.action for span in ran] == actions


def test_with_a_barrier_no_stage_begins_a_step_before_all_have_ended_the_last():
    got = sleep_through(one_forward_one_backward(2, 3), *[0.001] * 3, num_steps=2, barrier=True)
    steps = [[], []]
    for stage in range(2):
        own = [span for span in got.spans if span.stage == stage]
        steps[0] += own[:6]
        steps[1] += own[6:]
    assert len(steps[1]) == 12
    assert max(span.end for span in steps[0]) <= min(span.start for span in steps[1])


def test_two_layers_that_sleep_alike_are_two():  # zero finds a unit by its layers
    assert Sleep(0.0, 0.0) not in [Sleep(0.0, 0.0)]


def slow_receiver(rank, world_size, schedule):
    chunk = Sleep(*[0.03 * rank] * 3)  # stage 0 makes eight messages before stage 1 takes one
    batches = [torch.zeros(1, 1000)] * 8
    return Pipeline([chunk], schedule, (1000,)).step(batches, batches, mean_squared_error)


def test_no_stage_stands_still_for_a_send():
    got = timeline(launch(slow_receiver, 2, (gpipe(2, 8),)).results)
    forwards = [s for s in got.spans if s.stage == 0 and s.action.kind == "forward"]
    slow = [s for s in got.spans if s.stage == 1 and s.action.kind == "forward"]
    assert forwards[-1].end < slow[4].start


def peaks(make, p, m, rows):
    """peak_bytes by rank, of chunks that save 512 numbers a row."""
    schedule = make(p, m)
    weights = random_weights([16, *[256, 16] * len(route_of(schedule))])
    x, target = torch.zeros(m * rows, 16), torch.zeros(m * rows, 16)
    run = launch(hold, p, (weights, x, target, schedule), memory=True)
    return run.peak_bytes


def hold(rank, world_size, weights, x, target, schedule):
    layers = MLP.from_weights(weights, GELU).layers
    layers.append(GELU())
    places = route_of(schedule).places(rank)
    chunks = [MLP(layers[4 * place : 4 * place + 4]) for place in places]
    pipeline = Pipeline(chunks, schedule, (16,))
    m = pipeline.num_micro_batches
    pipeline.step(cut(x, m), cut(target, m), mean_squared_error)


@pytest.mark.parametrize(
    "name", ["gpipe", "1f1b", "zero bubble H2", "breadth first", "found on a V"]
)
def test_only_micro_batches_in_flight_are_held(name):
    p, m, rows, make = 3, 9, 64, SPLIT[name][0]
    saved = rows * (16 + 256 + 256 + 16) * 4  # x, both sides of the first GELU, the second's x
    held = simulate(make(p, m)).peak_in_flight
    more = simulate(make(p, 1)).peak_in_flight
    many, one = peaks(make, p, m, rows), peaks(make, p, 1, rows)
    data = 2 * (m - 1) * rows * 16 * 4
    for stage in range(p):
        expected = (held[stage] - more[stage]) * saved
        assert abs(many[stage] - one[stage] - data - expected) < 0.7 * saved


# Partitions


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8), st.integers(1, 8))
def test_no_other_partition_has_a_cheaper_largest_stage(costs, num_stages):
    if num_stages > len(costs):
        return
    parts = partition(len(costs), num_stages, costs)
    assert [layer for part in parts for layer in part] == list(range(len(costs)))
    largest = max(sum(costs[layer] for layer in part) for part in parts)
    for cuts in itertools.combinations(range(1, len(costs)), num_stages - 1):
        ends = (0, *cuts, len(costs))
        assert largest <= max(sum(costs[a:b]) for a, b in itertools.pairwise(ends))


def test_an_even_partition_gives_the_first_stages_what_is_over():
    assert partition(7, 3) == [range(0, 3), range(3, 5), range(5, 7)]
    assert partition(4, 4) == [range(0, 1), range(1, 2), range(2, 3), range(3, 4)]


# What is refused, with both numbers


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: partition(3, 4), "3 layers cannot make 4 stages"),
        (lambda: partition(3, 2, [1, 2]), "2 costs for 3 layers"),
        (lambda: cut(torch.ones(3, 2), 4), "3 rows cannot make 4 micro-batches"),
        (lambda: cut(torch.ones(3, 2), 0), "3 rows cannot make 0 micro-batches"),
        (lambda: gpipe(2, 0), "at least 1 of its micro-batches, not 0"),
    ],
)
def test_counts_that_do_not_fit_are_refused(bad, words):
    with pytest.raises(ValueError, match=words):
        bad()


def small_model():
    return MLP.from_weights(random_weights([4, 3], dtype=torch.float64))


def wrong_stages(rank, world_size):
    Pipeline([small_model()], gpipe(3, 2), (3,))


def wrong_chunks(rank, world_size):
    Pipeline([small_model(), small_model()], gpipe(1, 2), (3,))


def wrong_micro_batches(rank, world_size):
    x, labels = torch.ones(6, 4, dtype=torch.float64), torch.zeros(6).long()
    pipeline = Pipeline([small_model()], gpipe(1, 2), (3,))
    pipeline.step(cut(x, 3), cut(labels, 3), softmax_cross_entropy)


def wrong_targets(rank, world_size):
    x, labels = torch.ones(6, 4, dtype=torch.float64), torch.zeros(6).long()
    pipeline = Pipeline([small_model()], gpipe(1, 2), (3,))
    pipeline.step(cut(x, 2), cut(labels, 3), softmax_cross_entropy)


def wrong_dtype(rank, world_size):
    x, labels = torch.ones(6, 4), torch.zeros(6).long()
    pipeline = Pipeline([small_model()], gpipe(1, 2), (3,))
    pipeline.step(cut(x, 2), cut(labels, 2), softmax_cross_entropy)


def another_width(rank, world_size):
    x, labels = torch.ones(6, 4, dtype=torch.float64), torch.zeros(6).long()
    pipeline = Pipeline([small_model()], gpipe(2, 2), (5,), torch.float64)
    pipeline.step(cut(x, 2), cut(labels, 2), softmax_cross_entropy)


def another_dtype(rank, world_size):
    x, labels = torch.ones(5, 4, dtype=torch.float64), torch.zeros(5).long()
    pipeline = Pipeline([small_model()], gpipe(2, 2), (3,))
    pipeline.step(cut(x, 2), cut(labels, 2), softmax_cross_entropy)


def a_schedule_that_waits_for_ever(rank, world_size):
    Pipeline([small_model()], [gpipe(1, 2)[0][::-1]], (3,))


@pytest.mark.parametrize(
    ("drive", "words"),
    [
        (wrong_stages, "3 stages of 1 chunk, the group of 1 rank"),
        (wrong_chunks, "1 stage of 1 chunk, .* this one has 2 chunks"),
        (wrong_micro_batches, "stage 0 is given 3 micro-batches, but the schedule runs 2"),
        (wrong_targets, "stage 0 is given 3 targets, but the schedule runs 2 micro-batches"),
        (wrong_dtype, "x has 4 features of torch.float32, but this layer takes 4 of torch.float64"),
        (a_schedule_that_waits_for_ever, "stage 0 cannot do its action 1, backward 1"),
    ],
)
def test_a_pipeline_that_cannot_run_is_refused(drive, words):
    with pytest.raises(RankError, match=words):
        launch(drive, 1)


@pytest.mark.parametrize(
    ("drive", "words"),
    [
        (another_width, r"stage 0 the output of micro-batch 0 is \[3, 3\] .* told that \[3, 5\]"),
        (another_dtype, r"is \[3, 3\] torch.float64, .* told that \[3, 3\] torch.float32 crosses"),
    ],
)
def test_what_crosses_a_boundary_has_the_shape_and_dtype_that_the_pipeline_was_told(drive, words):
    with pytest.raises(RankError, match=words):
        launch(drive, 2)


def test_a_sleep_of_no_seconds_shortens_none_that_follows(monkeypatch):
    """A lab's first step sleeps so, and a busy machine makes long ones of that."""
    pause, asked = time.sleep, []
    monkeypatch.setattr(asleep.time, "sleep", lambda seconds: asked.append(seconds) or pause(0.01))
    asleep._last[:] = 0.0, 0.0
    asleep.sleep(0.0)
    asleep.sleep(0.002)
    assert asked == [pytest.approx(0.002)]


# On a GPU


def on_gpu(rank, world_size, weights, x, labels, some):
    weights = [(weight.cuda(), bias.cuda()) for weight, bias in weights]
    found = many_steps(
        rank, world_size, weights, x.cuda(), labels.cuda(), some, softmax_cross_entropy
    )
    return [
        (
            Step(None if step.loss is None else step.loss.cpu(), step.spans),
            [[t.cpu() for t in c] for c in chunks],
        )
        for step, chunks in found
    ]


@pytest.mark.gpu
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_on_cuda_tensors_over_gloo_the_same_holds(world_size):
    weights, x, labels = digits_like(SIZES, 13)
    some = list(cases(world_size, (2, 4)))
    run = launch(on_gpu, world_size, (weights, x, labels, some), backend="gloo", deadline=110)
    expected = unsplit(weights, x, labels, softmax_cross_entropy)
    for number in range(len(some)):
        assert_unsplit([result[number] for result in run.results], expected, some[number])
